"""How are the formulas cited, and how this software? In APA 7 and MLA 9."""

from typing import NamedTuple

from petard_worker.ratings.calculator.accepted import CalculatorInputError, shortened
from petard_worker.ratings.citations import REFERENCES

STYLES = ("apa", "mla")
PETARD = "petard"
SYSTEMS = tuple(REFERENCES)
CITED = (*SYSTEMS, PETARD)
"""All that can be cited."""

TITLE = "Petard"
AUTHORS, YEAR = "The Petard authors", 2026
"""As the licence of the package names them."""
ARTICLE = "The "
"""Does not count in the order of the alphabet."""


class Citation(NamedTuple):
    """An entry of a list of references."""

    system: str
    style: str
    text: str
    italic: str
    """The part of the text that is set in italics."""


def cite(style: str, system: str) -> Citation:
    """Return the citation of the source of a system's formulas, or of Petard whatever its version.

    Raises CalculatorInputError.
    """
    check_style(style)
    if system not in CITED:
        raise CalculatorInputError(f"system is {shortened(system)}, but must be one of {', '.join(CITED)}")
    if system == PETARD:
        return petard_entry(style, "")
    return Citation(system, style, *REFERENCES[system][style])


def cite_software(style: str, version: str) -> Citation:
    """Return the citation of a version of Petard. Raises CalculatorInputError."""
    check_style(style)
    if not isinstance(version, str) or not version.strip():
        raise CalculatorInputError(f"version is {shortened(version)}, but must be one such as 1.0.0")
    return petard_entry(style, version)


def petard_entry(style: str, version: str) -> Citation:
    """Return the citation of Petard, of one version if it is not empty."""
    if style == "apa":
        of_version = f" (Version {version})" if version else ""
        text = f"{AUTHORS}. ({YEAR}). {TITLE}{of_version} [Computer software]."
        return Citation(PETARD, style, text, TITLE)
    of_version = f"Version {version}, " if version else ""
    return Citation(PETARD, style, f"{AUTHORS}. {TITLE}. {of_version}{YEAR}. Computer software.", TITLE)


def alphabetical(citations: list[Citation]) -> list[Citation]:
    """Return citations in the order of a list of references."""
    return sorted(citations, key=lambda citation: citation.text.removeprefix(ARTICLE))


def check_style(style: str) -> None:
    """Refuse a style that is not known."""
    if style not in STYLES:
        raise CalculatorInputError(f"style is {shortened(style)}, but must be {' or '.join(STYLES)}")
