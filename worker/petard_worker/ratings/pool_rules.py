"""All that decides how a pool rates: its system, its bombs, what an abandoned game gives the others."""

from collections.abc import Iterator, Mapping
from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any, cast

from petard_worker.ratings.bombs import BombRules
from petard_worker.ratings.elo import Elo
from petard_worker.ratings.fifa import Fifa
from petard_worker.ratings.glicko import Glicko
from petard_worker.ratings.glicko2 import Glicko2
from petard_worker.ratings.parameters import BadParameterError, ParameterValue, build, switch
from petard_worker.ratings.system import RankSystem, RateByRank, RatingSystem
from petard_worker.ratings.weng_lin import WengLin
from petard_worker.ratings.world_rugby import WorldRugby

SYSTEMS: dict[str, type[RatingSystem]] = {
    system.name: system for system in (Glicko, Glicko2, Elo, Fifa, WorldRugby, WengLin)
}
BOMB_PREFIX = "bomb_"


@dataclass(frozen=True, slots=True)
class AbandonRules:
    """What an abandoned game does to those who stayed."""

    award_win: bool = switch(False, "whether the ones who stayed are rated as winners")


@dataclass(frozen=True, slots=True)
class PoolRules:
    """How a pool rates. Two pools with equal rules rate the same games to the same bits."""

    system: RatingSystem = field(default_factory=Glicko)
    bombs: BombRules = field(default_factory=BombRules)
    abandons: AbandonRules = field(default_factory=AbandonRules)
    rate_by_rank: RateByRank | None = field(init=False, repr=False, compare=False)
    """How a game of one against one is rated where the system looks at nothing but who won."""

    def __post_init__(self) -> None:
        """Find out what the system looks at."""
        by_rank = self.system.rate_by_rank if isinstance(self.system, RankSystem) else None
        object.__setattr__(self, "rate_by_rank", by_rank)

    def declared(self, parameter: str) -> Iterator[Field[Any]]:
        """Yield the declaration of a parameter given by its public name, if there is one."""
        for rules, prefix in ((self.system, ""), (self.bombs, BOMB_PREFIX), (self.abandons, "")):
            yield from (field for field in fields(cast("Any", rules)) if prefix + field.name == parameter)

    def parameters(self) -> dict[str, ParameterValue]:
        """Return every parameter by its public name, defaults included."""
        system: Any = self.system
        bombs = {BOMB_PREFIX + name: value for name, value in asdict(self.bombs).items()}
        return {**asdict(system), **bombs, **asdict(self.abandons)}


def pool_rules(system: str, given: Mapping[str, ParameterValue]) -> PoolRules:
    """Return the rules of a pool, or raise BadParameterError: what is wrong, its range, its default."""
    chosen = SYSTEMS.get(system)
    if chosen is None:
        raise BadParameterError(f"no system {system!r}; there are {', '.join(sorted(SYSTEMS))}")
    known = PoolRules(build(chosen, {})).parameters()
    for name in given:
        if name not in known:
            raise BadParameterError(f"no parameter {name!r}; there are {', '.join(known)}")
    abandon_names = {f.name for f in fields(AbandonRules)}
    bombs = {name: value for name, value in given.items() if name.startswith(BOMB_PREFIX)}
    abandons = {name: value for name, value in given.items() if name in abandon_names}
    rest = {name: value for name, value in given.items() if name not in bombs and name not in abandons}
    rules = PoolRules(
        build(chosen, rest), build(BombRules, bombs, BOMB_PREFIX), build(AbandonRules, abandons)
    )
    check_together(rules)
    return rules


def check_together(rules: PoolRules) -> None:
    """Raise BadParameterError where parameters are in range each but contradict each other."""
    system = rules.system
    if not system.rating_min <= system.rating <= system.rating_max:
        raise BadParameterError(
            f"rating {system.rating:g} is not between rating_min {system.rating_min:g}"
            f" and rating_max {system.rating_max:g}"
        )
    if (contradiction := system.contradiction()) is not None:
        raise BadParameterError(contradiction)
