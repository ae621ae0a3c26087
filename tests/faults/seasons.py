"""What the sources of these tests push: seasons with repeats, late games and hostile events in them."""

from faults.audit import Pushed
from faults.fleet import POOL
from petard_worker.simulate import Season, simulate_with_labels


def season(
    games: int,
    *,
    seed: int = 1,
    players: int = 20,
    repeat_share: float = 0.02,
    hostile_share: float = 0.01,
) -> Pushed:
    """Return the events of one source, with what must become of each."""
    plan = Season(
        pool=POOL,
        seed=seed,
        players=players,
        games=games,
        repeat_share=repeat_share,
        hostile_share=hostile_share,
        source=f"/servers/{seed}",
    )
    return list(simulate_with_labels(plan))


def raws(events: Pushed) -> list[bytes]:
    return [raw for raw, _ in events]


def rated(events: Pushed) -> int:
    """How many entries the events make."""
    return sum(expected == "rated" for _, expected in events)
