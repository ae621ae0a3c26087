"""The example files of schema/examples, and what their names say about them."""

import json
from pathlib import Path

from petard_schema import Envelope, PeriodClosed, RatingChanged, parse_event

SCHEMA = Path(__file__).parents[1] / "schema"


TOLD: dict[str, type[Envelope]] = {
    "petard.rating.changed.v1": RatingChanged,
    "petard.period.closed.v1": PeriodClosed,
}
"""What Petard says itself, by type."""


def read(raw: bytes) -> Envelope:
    """Return the message in an example: what is pushed goes through the parser."""
    model = TOLD.get(json.loads(raw)["type"])
    return parse_event(raw) if model is None else model.model_validate_json(raw)


def accepted() -> list[Path]:
    return sorted((SCHEMA / "examples" / "accepted").glob("*.json"))


def refused() -> list[Path]:
    """Return the refused ones: text in `.json`, what is no text in `.bin`."""
    return sorted(path for path in (SCHEMA / "examples" / "refused").glob("[!.]*"))


def reason_of(path: Path) -> str:
    """Return the reason that stands in a file's name.

    `self_match.json`, `too_deep.only_brackets.bin`: the reason ends at the first dot, the rest is a remark.
    `bad_field@data.sides.0.rank--zero.json`: after `@` stands the path of the field, after `--` the remark.
    """
    stem = path.name.removesuffix(path.suffix)
    if "@" in stem:
        return stem.partition("--")[0].replace("@", ":")
    return stem.partition(".")[0]
