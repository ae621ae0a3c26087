"""All Redis keys and channels, in one place. RQ's own keys start with `rq:` and are RQ's business."""

from dataclasses import dataclass

DEFAULT_PREFIX = "petard"


@dataclass(frozen=True, slots=True)
class Keys:
    """Names of keys and channels under one prefix."""

    prefix: str = DEFAULT_PREFIX

    def events(self, pool: str) -> str:
        """Name a list: events waiting, oldest first; producers may RPUSH here and nothing else."""
        return f"{self.prefix}:events:{pool}"

    def pushed(self) -> str:
        """Name a channel: `<pool>`, an optional poke by producers."""
        return f"{self.prefix}:events"

    def bell(self, pool: str) -> str:
        """Name a string with expiry: the id of the drain that is queued or running."""
        return f"{self.prefix}:bell:{pool}"

    def dispatcher(self) -> str:
        """Name a string with expiry: the worker whose dispatcher is the active one."""
        return f"{self.prefix}:dispatcher"

    def recent(self, pool: str) -> str:
        """Name a list with expiry: copies of what was trimmed last, a header and a body for every batch."""
        return f"{self.prefix}:recent:{pool}"

    def recent_since(self) -> str:
        """Name a string: since when, and for how long, every trim leaves a copy."""
        return f"{self.prefix}:recent"

    def committed(self) -> str:
        """Name a channel: `<pool>`, a poke from the drain to the publisher."""
        return f"{self.prefix}:committed"

    def replay(self, token: str) -> str:
        """Name a string with expiry: the last dead letter that a replay has pushed."""
        return f"{self.prefix}:replay:{token}"

    def changes(self, pool: str) -> str:
        """Name a stream: entry `<epoch>-<seq>`, field `event`."""
        return f"{self.prefix}:changes:{pool}"

    def changed(self) -> str:
        """Name a channel: `<pool> <epoch>-<seq>`, a poke from the publisher."""
        return f"{self.prefix}:changed"

    def leaderboard(self, pool: str) -> str:
        """Name a sorted set: player to ranking score."""
        return f"{self.prefix}:leaderboard:{pool}"
