"""What `petard rate` is asked: states of players and their games, from JSON to types or to a reason why not.

JSON is read as that of events is, by petard_schema.ijson; only a byte order mark may stand before it. Unknown
fields are refused and not ignored as in events: a misspelt `rating` would be a wrong answer.
"""

import json
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from petard_schema.envelope import MAX_SAFE_INTEGER
from petard_schema.game_events import MAX_PLAYERS, Home, Importance, Knockout, Players, Points, Rank, Weights
from petard_schema.ijson import NotIJsonError, TooDeepError, decode, shorten
from petard_schema.names import MAX_NAME, PlayerName
from petard_schema.parse import PLAIN_WORDS, wrong_weights

MAX_REQUEST_BYTES = 16 * 1024 * 1024
MAX_NAMES_OF_AN_OBJECT = 100_000
"""An object is checked to its end, unlike an array: a million wrong players would cost gigabytes."""
MAX_RATING = 10_000
"""No parameter of any system lets a pool's ratings go beyond it, up or down."""


def check_parameter(value: JsonValue) -> JsonValue:
    """Return the value of a parameter, or raise ValueError where it cannot be one of any."""
    if isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= MAX_NAME):
        return value
    raise ValueError("must be a number, true, false or a word")


ParameterName = Annotated[str, Field(max_length=MAX_NAME)]
Parameter = Annotated[JsonValue, AfterValidator(check_parameter)]
Rating = Annotated[float, Field(ge=-MAX_RATING, le=MAX_RATING)]
Deviation = Annotated[float, Field(ge=0, le=MAX_RATING)]
Volatility = Annotated[float, Field(ge=1e-6, le=100)]
Count = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER // 2)]
Age = Annotated[float, Field(ge=0, le=150)]
Days = Annotated[float, Field(ge=0, le=1_000_000)]


class BadRequestError(ValueError):
    """The request cannot be answered; the message names the place, what is there, and what should be."""


class Asked(BaseModel):
    """What every part of a request has in common: strict types, no unknown field, no huge object."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def know_every_field(cls, value: object) -> object:
        """Refuse the first field that is not one of ours, naming those that are, or that holds too much."""
        if not isinstance(value, dict):
            return value
        for name, part in value.items():
            if name not in cls.model_fields:
                raise ValueError(f"no field {shorten(name)}; there are {', '.join(cls.model_fields)}")
            if isinstance(part, dict) and len(part) > MAX_NAMES_OF_AN_OBJECT:
                raise ValueError(f"{name} has {len(part)} names, the limit is {MAX_NAMES_OF_AN_OBJECT}")
        return value


class GivenPlayer(Asked):
    """A player before the games; what is left out is as in a player who has played nothing."""

    rating: Rating | None = None
    rd: Deviation | None = None
    volatility: Volatility | None = None
    games: Count | None = None
    peak: Rating | None = None
    wins: Count | None = None
    draws: Count | None = None
    age: Age | None = None
    new_season: bool | None = None


class GivenSide(Asked):
    """A player or a team and where it ended."""

    players: Players
    rank: Rank
    points: Points | None = None
    home: Home | None = None
    weights: Weights | None = None


class GivenGame(Asked):
    """One game, and how many days before it each player had played last."""

    sides: Annotated[tuple[GivenSide, ...], Field(strict=False, fail_fast=True)]
    days: dict[PlayerName, Days] = {}
    importance: Importance | None = None
    decided_by: Literal["play", "shootout", "forfeit"] = "play"
    knockout: Knockout = False

    def players(self) -> list[str]:
        """Return everybody in the game, in the order of its sides."""
        return [player for side in self.sides for player in side.players]


class RateRequest(Asked):
    """Games to rate, one after the other or all as one period, and where their players stood."""

    system: str
    parameters: dict[ParameterName, Parameter] = {}
    players: dict[PlayerName, GivenPlayer] = {}
    games: Annotated[tuple[GivenGame, ...], Field(min_length=1, strict=False, fail_fast=True)]
    simultaneous: bool = False


EXAMPLE = """\
{
  "system": "glicko",
  "parameters": {"c": 4.826},
  "players": {
    "alice": {"rating": 1500, "rd": 200, "games": 10, "wins": 5, "draws": 1},
    "bob": {"rating": 1400, "rd": 30},
    "carol": {"rating": 1550, "rd": 100}
  },
  "games": [
    {"sides": [{"players": ["alice"], "rank": 1}, {"players": ["bob"], "rank": 2}]},
    {"sides": [{"players": ["carol"], "rank": 1}, {"players": ["alice"], "rank": 2}],
     "days": {"alice": 0.5, "carol": 30}}
  ],
  "simultaneous": false
}
"""
"""A request to begin with."""


def read_request(raw: bytes) -> RateRequest:
    """Return the request in `raw`, or raise BadRequestError for the first thing that is wrong with it."""
    document = read_json(raw)
    if not isinstance(document, dict):
        raise BadRequestError(f"the request is not a JSON object; it is {shorten(document)}")
    try:
        request = RateRequest.model_validate(document)
    except ValidationError as error:
        raise bad_field(error) from None
    check_players(request.players)
    for number, game in enumerate(request.games):
        check_game(game, f"games[{number}]")
    if request.simultaneous:
        check_days_agree(request.games)
    return request


def read_json(raw: bytes) -> object:
    """Return the JSON value in `raw`, or raise BadRequestError."""
    if len(raw) > MAX_REQUEST_BYTES:
        raise BadRequestError(f"the request is longer than the limit of {MAX_REQUEST_BYTES} bytes")
    if not raw.strip():
        raise BadRequestError("the request is empty; 'petard rate --example' prints one to begin with")
    try:
        return decode(raw.removeprefix(BOM_UTF8))
    except UnicodeDecodeError as error:
        raise BadRequestError(f"the request is not UTF-8: {error.reason} at byte {error.start}") from None
    except TooDeepError as error:
        raise BadRequestError(f"the request is {error}") from None
    except NotIJsonError as error:
        raise BadRequestError(f"the request is not JSON that can be read: {error}") from None


def check_players(players: Mapping[str, GivenPlayer]) -> None:
    """Raise BadRequestError where a player has won and drawn more games than were played."""
    for name, player in players.items():
        games, wins, draws = player.games or 0, player.wins or 0, player.draws or 0
        if wins + draws > games:
            where = place("players", name, "games")
            raise BadRequestError(f"{where}: must be at least {wins} wins and {draws} draws; it is {games}")


def check_game(game: GivenGame, where: str) -> None:
    """Raise BadRequestError where well-formed sides make no game."""
    if len(game.sides) < 2:
        raise BadRequestError(f"{where}.sides: must be at least two; there are {len(game.sides)}")
    counts = Counter(game.players())
    if counts.total() > MAX_PLAYERS:
        raise BadRequestError(
            f"{where}.sides: must have at most {MAX_PLAYERS} players; {counts.total()} play"
        )
    name, count = counts.most_common(1)[0]
    if count > 1:
        raise BadRequestError(f"{where}.sides: must name a player once; {name!r} stands there {count} times")
    for number, side in enumerate(game.sides):
        if side.weights is not None and (wrong := wrong_weights(side.players, side.weights)):
            raise BadRequestError(f"{where}.sides[{number}].weights: {wrong}")
    stranger = next((name for name in game.days if name not in counts), None)
    if stranger is not None:
        playing = ", ".join(repr(player) for player in islice(counts, 5))
        raise BadRequestError(
            f"{where}.days: must be of players in the game: {playing}{', …' if len(counts) > 5 else ''};"
            f" {stranger!r} is not one"
        )


def check_days_agree(games: Sequence[GivenGame]) -> None:
    """Raise BadRequestError where simultaneous games say different days of one player."""
    said: dict[str, float] = {}
    for number, game in enumerate(games):
        for name, days in game.days.items():
            if said.setdefault(name, days) != days:
                raise BadRequestError(
                    f"{place(f'games[{number}].days', name)}: must be the same in all simultaneous games;"
                    f" it is {days:g} and was {said[name]:g}"
                )


def bad_field(error: ValidationError) -> BadRequestError:
    """Return the refusal for the first field that pydantic complains about."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = place(*(part for part in first["loc"] if part != "[key]"))
    words = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    what = PLAIN_WORDS.get(first["type"]) or words
    shown = first["type"] != "missing" and not isinstance(first["input"], (dict, list))
    return BadRequestError(
        f"{where or 'the request'}: {what}" + (f"; it is {shorten(first['input'])}" if shown else "")
    )


def place(*parts: str | int) -> str:
    """Return where something stands, as `games[2].sides[0].rank` or `players["a b"].rd`."""
    path = ""
    for index, part in enumerate(parts):
        if isinstance(part, int):
            path += f"[{part}]"
        elif index == 0:
            path = part
        else:
            plain = part.isidentifier() and len(part) <= MAX_NAME
            path += f".{part}" if plain else f"[{shorten_name(part)}]"
    return path


def shorten_name(name: str) -> str:
    """Return a name in quotes, on one line, short."""
    return json.dumps(name if len(name) <= 80 else name[:77] + "...")
