"""The example files of schema/examples, and what their names say about them."""

from pathlib import Path

SCHEMA = Path(__file__).parents[1] / "schema"


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
