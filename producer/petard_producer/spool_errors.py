"""What can go wrong with a spool, one class per decision, all of them SpoolError."""

from pathlib import Path

NOT_KEPT = "The event was not kept."
MAY_BE_KEPT = "Whether the event was kept is not known: push the same event again, it counts once."


class SpoolError(Exception):
    """The spool did not do what was asked; `may_be_kept` says whether the event may be sent all the same."""

    def __init__(self, path: Path, problem: str, *, may_be_kept: bool = False) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem
        self.may_be_kept = may_be_kept

    def __str__(self) -> str:
        return f"spool {self.path} {self.problem}"


class SpoolFull(SpoolError):  # noqa: N818 - what happened, in the words that the README uses
    """There is no room: the events of this call were not kept, all others are.

    For example:

        try:
            producer.push(event)
        except SpoolFull as full:
            log.error("%s", full)  # names the limit, what is held, the file and the remedy
    """

    def __init__(self, path: Path, *, limit: int, held: int, asked: int) -> None:
        super().__init__(
            path,
            f"is full: it holds {held} of at most {limit} bytes, {asked} more were to be kept. {NOT_KEPT} "
            "Push it again when Redis takes events (Producer.spooled() says why not), or raise spool_limit",
        )
        self.limit = limit
        self.held = held
        self.asked = asked


class SpoolBusy(SpoolError):  # noqa: N818 - what happened, in the words that the README uses
    """The disk or another process took longer than `block_at_most`: push the same event again."""


class SpoolUnusable(SpoolError):  # noqa: N818 - what happened, in the words that the README uses
    """The file cannot be read or written, and no second attempt helps before somebody has looked at it."""
