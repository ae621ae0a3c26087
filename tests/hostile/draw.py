"""Random events that are good, for one thing in each to be spoiled: the same ones for the same seed."""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, TypeVar

POOL = "p"
Json = dict[str, object]
Spoiled = tuple[Json, str]
"""An event with one wrong field, and its path."""
Item = TypeVar("Item")

HOLE = "@hole@"
"""Stands in an event where a text comes in that no JSON writer would write."""

# Letters, and what others stumble over: markup, SQL, templates, brackets, quotes and backslashes. All of it
# may stand in a name.
ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "abc'\";--/*<>&%s{}[](){{}}\\$|`~^#!?@=+,.:_",
    "äöüßéñøłžÀÇ",
    "абвгдежзийклмн",
    "美咲李雷孛嬀",
    "אבגדמחמدعلي",
    "🎮🎲🏆",
)
MOST_TEXT = 24
MOST_BYTES = 4_000


class Draw:
    """The chances of one hostile text, and its number, which makes it another text than all others."""

    def __init__(self, seed: int, number: int) -> None:
        """Begin; nothing but the seed and the number decides what is drawn."""
        self.number = number
        self.chance = Random(f"{seed}/{number}")

    def one(self, *choices: Item) -> Item:
        return self.chance.choice(choices)

    def of(self, choices: Sequence[Item]) -> Item:
        return self.chance.choice(choices)

    def likely(self, share: float) -> bool:
        return self.chance.random() < share

    def between(self, low: int, high: int) -> int:
        return self.chance.randint(low, high)

    def size(self, low: int, high: int) -> int:
        """Return a number between the two, as often between 10 and 100 as between 100 and 1,000."""
        return min(high, round(low * (high / low) ** self.chance.random()))

    def name(self, *, most: int = MOST_TEXT) -> str:
        """Return a name that is allowed."""
        alphabet = self.of(ALPHABETS)
        return "".join(self.chance.choices(alphabet, k=self.between(1, most)))

    def names(self, count: int) -> list[str]:
        """Return as many different names."""
        return [f"{self.name(most=8)}.{number}" for number in range(count)]

    def spoiled(self, bad: str) -> str:
        """Return a name with this in its middle."""
        return f"{self.name(most=8)}{bad}{self.name(most=8)}"

    def value(self, depth: int = 2) -> object:
        """Return any JSON value that is allowed, not nested deeper than this."""
        plain: list[Callable[[], object]] = [
            lambda: None,
            lambda: self.likely(0.5),
            lambda: self.between(-(2**53) + 1, 2**53 - 1),
            lambda: self.chance.uniform(-1e6, 1e6),
            lambda: self.name(most=8),
        ]
        if not depth or self.likely(0.6):
            return self.of(plain)()
        members = [self.value(depth - 1) for _ in range(self.between(0, 3))]
        if self.likely(0.5):
            return members
        return {f"{self.name()}{number}": member for number, member in enumerate(members)}

    def envelope(self, **changes: object) -> Json:
        """Return a good event of either type, with these members in place of its own."""
        return self.finished(**changes) if self.likely(0.6) else self.abandoned(**changes)

    def finished(self, **changes: object) -> Json:
        return self._small(lambda: {**self._outside("finished"), "data": self.finished_data()}) | changes

    def abandoned(self, **changes: object) -> Json:
        return self._small(lambda: {**self._outside("abandoned"), "data": self.abandoned_data()}) | changes

    def with_data(self, **changes: object) -> Json:
        """Return a good event of either type, with these members of the data in place of its own."""
        return change_data(self.envelope(), **changes)

    @staticmethod
    def _small(make: Callable[[], Json]) -> Json:
        """Return an event that leaves room for what is wrong with it, even in UTF-16."""
        event = make()
        while len(json.dumps(event)) > MOST_BYTES:
            event = make()
        return event

    def _outside(self, kind: str) -> Json:
        event: Json = {
            "specversion": "1.0",
            "id": f"h-{self.number}",
            "source": f"/hostile/{self.between(1, 9)}",
            "type": f"petard.game.{kind}.v1",
            "time": self.time(),
        }
        if self.likely(0.2):
            event[self.one("subject", "dataschema", "traceparent", "comment")] = self.value()
        return event

    def finished_data(self) -> Json:
        data = self._data()
        data["sides"] = self.sides(self.size(2, 6), ranked=True)
        if self.likely(0.2):
            data["decided_by"] = self.one("play", "shootout", "forfeit")
        return data

    def abandoned_data(self) -> Json:
        data = self._data()
        sides = self.sides(self.size(2, 6), ranked=self.likely(0.3))
        leavers = players_of(sides)
        data["sides"] = sides
        data["abandoned_by"] = self.chance.sample(leavers, self.between(1, len(leavers)))
        if self.likely(0.2):
            data["fault"] = self.one("player", "server")
        return data

    def _data(self) -> Json:
        data: Json = {"pool": POOL, "game": f"hg-{self.number}"}
        if self.likely(0.3):
            data["meta"] = {f"{self.name()}{n}": self.value() for n in range(self.between(0, 3))}
        if self.likely(0.2):
            data["importance"] = self.one(0, 1, 0.5, 1_000_000)
        if self.likely(0.2):
            data["started"] = self.time()
        if self.likely(0.2):
            data["rated"] = self.likely(0.5)
        return data

    def sides(self, count: int, *, ranked: bool) -> list[Json]:
        """Return sides with one to three players, all of them different."""
        sizes = [self.one(1, 1, 1, 2, 3) for _ in range(count)]
        names = iter(self.names(sum(sizes)))
        return [self._side([next(names) for _ in range(size)], ranked) for size in sizes]

    def _side(self, players: list[str], ranked: bool) -> Json:
        side: Json = {"players": players}
        if ranked:
            side["rank"] = self.size(1, 9)
        if self.likely(0.1):
            side["points"] = self.one(0, 3, -2.5, 1e15)
        if self.likely(0.1):
            side["home"] = self.likely(0.5)
        return side

    def time(self) -> str:
        """Return a time of the past as RFC 3339 has it."""
        zone = self.one("Z", "z", "+00:00", "-05:30", "+12:45")
        fraction = self.one("", ".5", ".123456789")
        return (
            f"20{self.between(10, 24)}-{self.between(1, 12):02}-{self.between(1, 28):02}{self.one('T', 't')}"
            f"{self.between(0, 23):02}:{self.between(0, 59):02}:{self.between(0, 59):02}{fraction}{zone}"
        )

    def text(self, document: object, *, ascii_only: bool | None = None) -> bytes:
        """Return JSON in one of the ways in which it can be written."""
        if isinstance(document, dict):
            members = list(document.items())
            self.chance.shuffle(members)
            document = dict(members)
        return json.dumps(
            document,
            ensure_ascii=self.likely(0.5) if ascii_only is None else ascii_only,
            separators=self.one((",", ":"), (", ", ": "), (" ,\n", "\t: ")),
        ).encode("utf-8", "surrogatepass")

    def with_hole(self) -> Json:
        """Return a good event with a hole anywhere among its values."""
        inner: object = HOLE
        for _ in range(self.between(0, 6)):
            inner = [inner] if self.likely(0.5) else {self.name(): inner}
        if self.likely(0.2):
            return self.envelope(**{self.one("extra", "subject", "traceparent"): inner})
        if self.likely(0.2):
            return self.with_data(**{self.one("started", "importance", "extra", "game"): inner})
        return self.with_data(meta={self.name(): inner})

    def filled(self, piece: bytes) -> bytes:
        """Return a good event in which this text stands as a value."""
        return fill(self.text(self.with_hole()), piece)

    def with_text(self, piece: bytes) -> bytes:
        """Return a good event in which a text, or the name of a member, holds these bytes."""
        quoted = b'"' + self.name().encode("ascii", "ignore").replace(b"\\", b"").replace(b'"', b"") + piece
        if self.likely(0.3):
            return self.filled(b"{" + quoted + b'": ' + self.one(b"1", b'""', b"null") + b"}")
        return self.filled(quoted + self.one(b"", b"x", b" ") + b'"')


class Payload(NamedTuple):
    """A hostile text, its class, and the reason for which it must be refused."""

    kind: str
    raw: bytes
    reason: str


def fill(text: bytes, piece: bytes) -> bytes:
    """Put these bytes in the place of the hole."""
    assert text.count(b'"@hole@"') == 1
    return text.replace(b'"@hole@"', piece)


def change_data(event: Json, **changes: object) -> Json:
    """Return the event with these members of its data in place of its own."""
    return {**event, "data": {**data_of(event), **changes}}


def data_of(event: Json) -> Json:
    data = event["data"]
    assert isinstance(data, dict)
    return data


def sides_of(event: Json) -> list[Json]:
    sides = data_of(event)["sides"]
    assert isinstance(sides, list)
    return sides


def players_of(sides: Sequence[Json]) -> list[str]:
    return [player for side in sides for player in names_of(side)]


def names_of(side: Json) -> list[str]:
    players = side["players"]
    assert isinstance(players, list)
    return players
