"""How are the formulas cited, and how this software? In APA 7 and MLA 9."""

from typing import NamedTuple

from petard_worker.ratings.calculator.accepted import CalculatorInputError, shortened
from petard_worker.ratings.citations import REFERENCES

STYLES = ("apa", "mla")


class Citation(NamedTuple):
    """An entry of a list of references."""

    system: str
    style: str
    text: str
    italic: str
    """The part of the text that is set in italics."""


SYSTEMS = tuple(REFERENCES)


def cite(style: str, system: str) -> Citation:
    """Return the citation of the source of a system's formulas. Raises CalculatorInputError."""
    check_style(style)
    if system not in REFERENCES:
        raise CalculatorInputError(f"system is {shortened(system)}, but must be one of {', '.join(SYSTEMS)}")
    return Citation(system, style, *REFERENCES[system][style])


def cite_software(style: str, name: str, version: str) -> Citation:
    """Return the citation of a program that names neither authors nor a date. Raises CalculatorInputError."""
    check_style(style)
    if style == "apa":
        return Citation(name, style, f"{name} (Version {version}) [Computer software]. (n.d.).", name)
    return Citation(name, style, f"{name}. Version {version}, computer software.", name)


def check_style(style: str) -> None:
    """Refuse a style that is not known."""
    if style not in STYLES:
        raise CalculatorInputError(f"style is {shortened(style)}, but must be {' or '.join(STYLES)}")
