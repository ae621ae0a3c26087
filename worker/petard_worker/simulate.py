"""A season of games between players of known strength, with everything that goes wrong on the way to a queue.

Who is strong, who meets whom, how games end and what mischief is mixed in follows from the Season alone: no
clock, and of randomness only `Random.random()`, whose numbers are the same on every version and platform.
Each kind of mischief draws from a stream of its own: turning one of them off leaves the games as they were.
"""

import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from math import fsum
from random import Random
from typing import Literal, TypeAlias

from petard_schema import MAX_EVENT_BYTES, DeadReason
from petard_schema.names import MAX_NAME, MAX_SOURCE, check_pool, check_printable
from petard_schema.times import format_time

Expected: TypeAlias = Literal["rated", "repeat"] | DeadReason
"""What must become of a line: counted, dropped as delivered before, or refused for this reason."""

Json: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class Season:
    """Everything that decides the outcome; shares are of the number of games, from 0 to 1."""

    pool: str = "demo"
    seed: int = 1
    players: int = 200
    games: int = 20_000
    mean: float = 1500.0
    spread: float = 300.0
    """Standard deviation of the true strengths, in rating points."""
    draw_share: float = 0.1
    """Between equals; the less equal they are, the fewer draws."""
    abandon_share: float = 0.02
    late_share: float = 0.02
    repeat_share: float = 0.02
    hostile_share: float = 0.01
    start: datetime = datetime(2024, 1, 1, tzinfo=UTC)
    seconds_between_games: float = 60.0
    source: str = "/simulated"

    def __post_init__(self) -> None:
        """Refuse a season that cannot be played."""
        check_pool(self.pool)
        check_printable(self.source)
        if not 1 <= len(self.source) <= MAX_SOURCE:
            raise ValueError(f"source has 1 to {MAX_SOURCE} characters")
        if abs(self.seed) >= 2**63:
            raise ValueError("seed has at most 63 bits: it stands in every id")
        if self.players < 2:
            raise ValueError("a season has at least two players")
        if self.games < 0:
            raise ValueError("a season cannot have fewer than no games")
        for name in ("draw_share", "abandon_share", "late_share", "repeat_share", "hostile_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a share, from 0 to 1")
        if self.spread < 0 or self.seconds_between_games <= 0:
            raise ValueError("spread cannot be negative, seconds_between_games must be positive")
        if self.start.tzinfo is None:
            raise ValueError("start needs a zone")


@dataclass(frozen=True, slots=True)
class Game:
    """One game as it was played."""

    number: int
    time: datetime
    first: str
    second: str
    ranks: tuple[int, int]
    left: str | None = None
    """Who abandoned it; the ranks mean nothing then."""


def strengths(season: Season) -> dict[str, float]:
    """Return every player's true strength in rating points."""
    rng = Random(f"{season.seed}/strengths")  # noqa: S311 - a season is no secret

    def bell() -> float:
        # Twelve uniforms make a bell of deviation 1 by additions alone, bit for bit the same everywhere:
        # gauss() rests on the platform's log and cos, and sum() rounds differently since Python 3.12.
        return fsum(rng.random() for _ in range(12)) - 6

    return {player_name(number): season.mean + season.spread * bell() for number in range(season.players)}


def simulate(season: Season) -> Iterator[bytes]:
    """Yield the lines of the wire in the order of delivery, without newlines."""
    for line, _ in simulate_with_labels(season):
        yield line


def simulate_with_labels(season: Season) -> Iterator[tuple[bytes, Expected]]:
    """Yield every line together with what must become of it.

    The labels hold for one consumer that reads the lines in this order: a lie about an earlier game is only
    recognised after the truth.
    """
    rng = Random(f"{season.seed}/mischief")  # noqa: S311
    teller = teller_of(season)
    lies = endless_lies(season)
    told: Game | None = None
    waiting: list[tuple[int, bytes]] = []
    for position, game in enumerate(out_of_order(season, play(season))):
        line = teller.tell(game)
        yield line, "rated"
        if game.left is None:
            told = game
        if rng.random() < season.repeat_share:
            heapq.heappush(waiting, (position + int(rng.random() * 200), line))
        while waiting and waiting[0][0] <= position:
            yield heapq.heappop(waiting)[1], "repeat"
        if rng.random() < season.hostile_share and told is not None:
            reason, lie = next(lies)
            unheard = replace(game, left=None)
            yield lie(Liar(teller, f"{teller.prefix}-x{position}", unheard, told)), reason
    for _, line in sorted(waiting):
        yield line, "repeat"


def play(season: Season) -> Iterator[Game]:
    """Yield the games in the order in which they ended."""
    rng = Random(f"{season.seed}/games")  # noqa: S311
    strength = strengths(season)
    names = list(strength)
    chances = chances_to_leave(season)
    start = season.start.astimezone(
        UTC
    )  # adding to a local time would repeat the hour in which clocks go back
    step = timedelta(seconds=season.seconds_between_games)
    for number in range(season.games):
        first, second = meet(rng, names, strength)
        ranks = score(rng, strength[first] - strength[second], season.draw_share)
        left = leaver(rng, chances, first, second)
        yield Game(number, start + number * step, first, second, ranks, left)


def meet(rng: Random, names: list[str], strength: dict[str, float]) -> tuple[str, str]:
    """Return somebody and the nearest in strength of three others, as a small lobby would match them."""
    first = int(rng.random() * len(names))
    others = [int(rng.random() * (len(names) - 1)) for _ in range(3)]
    rivals = [names[other + (other >= first)] for other in others]
    return names[first], min(rivals, key=lambda rival: abs(strength[rival] - strength[names[first]]))


def score(rng: Random, difference: float, draw_share: float) -> tuple[int, int]:
    """Return the ranks of a game whose expected score is the logistic one, draws included."""
    expected = 1 / (1 + 10 ** (-difference / 400))
    draw = draw_share * 2 * min(expected, 1 - expected)
    drawn = rng.random()
    if drawn < draw:
        return 1, 1
    return (1, 2) if drawn < draw / 2 + expected else (2, 1)


def leaver(rng: Random, chances: dict[str, float], first: str, second: str) -> str | None:
    """Return who leaves the game, if anybody."""
    drawn = rng.random()
    if drawn < chances[first]:
        return first
    return second if drawn < chances[first] + chances[second] else None


def chances_to_leave(season: Season) -> dict[str, float]:
    """Return how likely each player is to leave a game: every twentieth is 20 times as likely as the others.

    Spread evenly over everybody, a few abandons in a hundred games would never punish anyone.
    """
    weights = [20 if number % 20 == 7 else 1 for number in range(season.players)]
    each = season.abandon_share / (2 * sum(weights) / season.players)
    return {player_name(number): min(each * weight, 0.5) for number, weight in enumerate(weights)}


def out_of_order(season: Season, games: Iterator[Game]) -> Iterator[Game]:
    """Hold some games back until a newer one of one of their players has been delivered."""
    rng = Random(f"{season.seed}/late")  # noqa: S311
    held: dict[int, Game] = {}
    held_of: dict[str, set[int]] = {}
    for game in games:
        if rng.random() < season.late_share:
            held[game.number] = game
            for player in (game.first, game.second):
                held_of.setdefault(player, set()).add(game.number)
            continue
        yield game
        if game.left is None:
            overtaken = held_of.pop(game.first, set()) | held_of.pop(game.second, set())
            for number in sorted(overtaken & held.keys()):
                yield held.pop(number)
    yield from held.values()


@dataclass(frozen=True, slots=True)
class Teller:
    """A game server that tells the truth."""

    season: Season
    prefix: str
    """Of ids and games. Another season has other ones, so both can be played into one pool."""

    def tell(self, game: Game) -> bytes:
        """Return the line that reports the game."""
        name = f"{self.prefix}-{game.number:06}"
        return encode(self.envelope(name, game, self.data(name, game)))

    def envelope(self, event_id: str, game: Game, data: Json) -> Json:
        """Return an event as the game server would send it."""
        kind = "finished" if game.left is None else "abandoned"
        return {
            "specversion": "1.0",
            "id": event_id,
            "source": self.season.source,
            "type": f"petard.game.{kind}.v1",
            "time": format_time(game.time),
            "data": data,
        }

    def data(self, name: str, game: Game) -> Json:
        """Return what the event says about the game."""
        pool: Json = {"pool": self.season.pool, "game": name}
        if game.left is not None:
            sides = [{"players": [game.first]}, {"players": [game.second]}]
            return pool | {"sides": sides, "abandoned_by": [game.left]}
        return pool | {"sides": ranked([game.first], [game.second], ranks=game.ranks)}


def teller_of(season: Season) -> Teller:
    """Return the game server of the season."""
    # 1500 and 1500.0, noon here and noon elsewhere make the same season and so the same ids.
    values = [
        format_time(value)
        if isinstance(value, datetime)
        else value
        if isinstance(value, str)
        else float(value)
        for value in astuple(season)
    ]
    mark = blake2b(json.dumps(values).encode(), digest_size=4).hexdigest()
    return Teller(season, f"{season.seed}-{mark}")


@dataclass(frozen=True, slots=True)
class Liar:
    """A broken or hostile game server: it bends the report of a game that nobody has told of."""

    teller: Teller
    name: str
    game: Game
    told: Game
    """A finished game whose truth has been delivered."""

    def event(self, **changes: object) -> bytes:
        """Return an event in which members of the envelope are other ones."""
        return encode(self.honest() | changes)

    def without(self, member: str) -> bytes:
        """Return an event that lacks a member of the envelope."""
        return encode({name: value for name, value in self.honest().items() if name != member})

    def data(self, **changes: object) -> bytes:
        """Return an event in which members of the data are other ones."""
        return encode(self.honest() | {"data": self.teller.data(self.name, self.game) | changes})

    def sides(self, *sides: list[str]) -> bytes:
        """Return an event with these players on its sides."""
        return self.data(sides=ranked(*sides, ranks=range(1, len(sides) + 1)))

    def abandoned(self, *leavers: str) -> bytes:
        """Return an abandoned game with these leavers."""
        left = replace(self.game, left=self.game.first)
        data = self.teller.data(self.name, left) | {"abandoned_by": leavers}
        return encode(self.teller.envelope(self.name, left, data))

    def contradiction(self) -> bytes:
        """Return another outcome of a game that was told."""
        other = replace(self.told, ranks=(2, 1) if self.told.ranks == (1, 2) else (1, 2))
        data = self.teller.data(f"{self.teller.prefix}-{self.told.number:06}", other)
        return encode(self.teller.envelope(self.name, other, data))

    def borrowed_id(self) -> bytes:
        """Return a new game under the id of an event that was told."""
        return self.event(id=f"{self.teller.prefix}-{self.told.number:06}")

    def honest(self) -> Json:
        """Return the event as it should have been."""
        return self.teller.envelope(self.name, self.game, self.teller.data(self.name, self.game))


Lie: TypeAlias = Callable[[Liar], bytes]

LIES: tuple[tuple[DeadReason, Lie], ...] = (
    (DeadReason.TOO_LARGE, lambda liar: liar.data(meta={"replay": "x" * MAX_EVENT_BYTES})),
    (DeadReason.NOT_JSON, lambda liar: liar.event()[:-7]),
    (DeadReason.NOT_JSON, lambda _: b"\x80\x04\x95\xff pickled by mistake"),
    (DeadReason.NOT_JSON, lambda _: b"GET /events HTTP/1.1"),
    (DeadReason.NOT_JSON, lambda liar: liar.data(importance=float("nan"))),
    (
        DeadReason.NOT_JSON,
        lambda liar: liar.event().replace(b'{"specversion"', b'{"id":"twice","specversion"'),
    ),
    (DeadReason.NOT_JSON, lambda liar: liar.event().replace(b'"game":"', b'"game":"\\u0000')),
    (DeadReason.NOT_JSON, lambda liar: liar.event().replace(b'"game":"', b'"game":"\\ud83d')),
    (DeadReason.NOT_JSON, lambda liar: liar.data(meta={"elapsed_ns": 2**53})),
    (DeadReason.TOO_DEEP, lambda liar: liar.data(meta={"board": nested(40)})),
    (DeadReason.NOT_AN_EVENT, lambda _: b'["alice","bob",1]'),
    (DeadReason.NOT_AN_EVENT, lambda _: b"null"),
    (DeadReason.NOT_AN_EVENT, lambda _: b'{"winner":"alice","loser":"bob"}'),
    (DeadReason.NOT_AN_EVENT, lambda liar: liar.without("id")),
    (DeadReason.NOT_AN_EVENT, lambda liar: liar.event(specversion="0.3")),
    (DeadReason.UNKNOWN_TYPE, lambda liar: liar.event(type="petard.game.finished.v99")),
    (DeadReason.UNKNOWN_TYPE, lambda liar: liar.event(type=["petard.game.finished.v1"])),
    (DeadReason.BAD_FIELD, lambda liar: liar.without("time")),
    (DeadReason.BAD_FIELD, lambda liar: liar.event(time="yesterday")),
    (DeadReason.BAD_FIELD, lambda liar: liar.event(time="2024-01-01T00:00:00")),
    (DeadReason.BAD_FIELD, lambda liar: liar.event(source="")),
    (DeadReason.BAD_FIELD, lambda liar: liar.data(game=None)),
    (DeadReason.BAD_FIELD, lambda liar: liar.data(pool="../etc/passwd")),
    (DeadReason.BAD_FIELD, lambda liar: liar.data(sides=[])),
    (DeadReason.BAD_FIELD, lambda liar: liar.data(sides="alice beat bob")),
    (DeadReason.BAD_FIELD, lambda liar: liar.data(sides=ranked(["alice"], ["bob"], ranks=(0, 1)))),
    (DeadReason.BAD_FIELD, lambda liar: liar.data(rated="no")),
    (DeadReason.BAD_FIELD, lambda liar: liar.sides(["alice\u202egnp.exe"], [liar.game.second])),
    (DeadReason.BAD_FIELD, lambda liar: liar.sides(["Zoe\u0308"], [liar.game.second])),
    (DeadReason.BAD_FIELD, lambda liar: liar.sides(["a" * (MAX_NAME + 1)], [liar.game.second])),
    (DeadReason.BAD_FIELD, lambda liar: liar.sides([""], [liar.game.second])),
    (DeadReason.TOO_MANY_PLAYERS, lambda liar: liar.sides(*([f"bot-{number}"] for number in range(65)))),
    (DeadReason.ONE_SIDE, lambda liar: liar.sides([liar.game.first, liar.game.second])),
    (DeadReason.SELF_MATCH, lambda liar: liar.sides([liar.game.first], [liar.game.first])),
    (DeadReason.PLAYER_TWICE, lambda liar: liar.sides([liar.game.first] * 2, [liar.game.second])),
    (
        DeadReason.PLAYER_ON_TWO_SIDES,
        lambda liar: liar.sides([liar.game.first], [liar.game.second, liar.game.first]),
    ),
    (DeadReason.PLAYER_TWICE, lambda liar: liar.abandoned(liar.game.first, liar.game.first)),
    (DeadReason.ABANDONER_NOT_IN_GAME, lambda liar: liar.abandoned("nobody")),
    (DeadReason.WRONG_POOL, lambda liar: liar.data(pool=f"{liar.teller.season.pool[:50]}-elsewhere")),
    (DeadReason.FROM_THE_FUTURE, lambda liar: liar.event(time="9999-01-01T00:00:00Z")),
    (DeadReason.CONFLICTING_GAME, Liar.contradiction),
    (DeadReason.ID_REUSED, Liar.borrowed_id),
)
"""Every lie, and the reason for which it must be refused by the drain of the season's pool."""


def endless_lies(season: Season) -> Iterator[tuple[DeadReason, Lie]]:
    """Yield every lie once before any comes again, in another order every time."""
    rng = Random(f"{season.seed}/lies")  # noqa: S311
    while True:
        yield from sorted(LIES, key=lambda _: rng.random())


def ranked(*sides: list[str], ranks: Iterable[int]) -> list[Json]:
    """Return sides of an event with their ranks."""
    return [{"players": players, "rank": rank} for players, rank in zip(sides, ranks, strict=True)]


def nested(depth: int) -> list[object]:
    """Return lists in lists, that many deep."""
    inner: list[object] = []
    for _ in range(depth - 1):
        inner = [inner]
    return inner


def encode(event: Json) -> bytes:
    """Return the event as compact JSON in UTF-8."""
    return _encoder.encode(event).encode()


def player_name(number: int) -> str:
    """Return a readable name that no other number has."""
    if number % 10 == 3 and number // 10 < len(FOREIGN_NAMES):
        return FOREIGN_NAMES[number // 10]
    return f"{MANNERS[number % len(MANNERS)]}-{ANIMALS[number // len(MANNERS) % len(ANIMALS)]}-{number}"


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

FOREIGN_NAMES = ("Zoë", "李雷", "Łukasz", "Ørsted", "Ξένια", "Юлия", "محمد", "さくら", "Ñandú", "O'Brien 🎲")
MANNERS = (
    "bold",
    "brisk",
    "calm",
    "clever",
    "eager",
    "gentle",
    "jolly",
    "keen",
    "lucky",
    "proud",
    "sly",
    "swift",
)
ANIMALS = ("badger", "falcon", "ferret", "gecko", "heron", "ibex", "lynx", "otter", "raven", "stoat", "viper")
