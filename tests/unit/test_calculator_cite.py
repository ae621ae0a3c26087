"""Citations in the forms that APA 7 and MLA 9 prescribe."""

from pathlib import Path

import pytest

from petard_worker.ratings.calculator import (
    CITED,
    STYLES,
    SYSTEMS,
    CalculatorInputError,
    alphabetical,
    cite,
    cite_software,
)

LICENCE = Path(__file__).parents[2] / "LICENSE"


def test_book_of_elo_in_both_styles() -> None:
    apa, mla = cite("apa", "elo"), cite("mla", "elo")

    assert apa.text == "Elo, A. E. (1978). The rating of chessplayers, past and present. Arco Publishing."
    assert mla.text == "Elo, Arpad E. The Rating of Chessplayers, Past and Present. Arco Publishing, 1978."


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("system", "facts"),
    [
        ("elo", ("Elo", "1978")),
        (
            "fide",
            (
                "International Chess Federation",
                "2024",
                "amended 1 Oct",
                "2025",
                "handbook.fide.com/chapter/B022024",
            ),
        ),
        ("glicko", ("Glickman", "1999", "48", "377", "10.1111/1467-9876.00159")),
        ("glicko2", ("Glickman", "2001", "28", "673", "10.1080/02664760120059219")),
        ("weng_lin", ("Weng", "Lin", "2011", "12", "267", "jmlr.org/papers/v12/weng11a.html")),
    ],
)
def test_citation_has_what_finds_the_source(style: str, system: str, facts: tuple[str, ...]) -> None:
    found = cite(style, system)

    assert all(fact in found.text for fact in facts)
    assert (found.system, found.style) == (system, style)


@pytest.mark.parametrize("style", STYLES)
def test_italic_part_stands_in_the_text(style: str) -> None:
    for system in SYSTEMS:
        found = cite(style, system)

        assert found.italic
        assert found.italic in found.text


def test_petard_is_cited_with_the_authors_and_year_of_its_licence() -> None:
    apa, mla = cite_software("apa", "0.1.0"), cite_software("mla", "0.1.0")

    assert apa.text == "The Petard authors. (2026). Petard (Version 0.1.0) [Computer software]."
    assert mla.text == "The Petard authors. Petard. Version 0.1.0, 2026. Computer software."
    assert "Copyright (c) 2026 The Petard authors" in LICENCE.read_text()


def test_petard_can_be_cited_whatever_its_version() -> None:
    apa, mla = cite("apa", "petard"), cite("mla", "petard")

    assert apa.text == "The Petard authors. (2026). Petard [Computer software]."
    assert mla.text == "The Petard authors. Petard. 2026. Computer software."


@pytest.mark.parametrize("style", STYLES)
def test_list_of_references_is_in_alphabetical_order(style: str) -> None:
    found = alphabetical([cite(style, name) for name in CITED])

    names = ["elo", "glicko", "glicko2", "fide", "petard", "weng_lin"]
    if style == "mla":  # by title, of works of one author
        names[1:3] = ["glicko2", "glicko"]
    assert [citation.system for citation in found] == names


def test_unknown_style_or_system_is_refused_with_the_known_ones() -> None:
    with pytest.raises(CalculatorInputError, match="style is 'chicago', but must be apa or mla"):
        cite("chicago", "elo")
    with pytest.raises(CalculatorInputError, match="system is 'ELO', but must be one of elo, fide"):
        cite("apa", "ELO")
    with pytest.raises(CalculatorInputError, match="style"):
        cite_software("", "1")
    with pytest.raises(CalculatorInputError, match="version is None"):
        cite_software("apa", None)  # type: ignore[arg-type]
    with pytest.raises(CalculatorInputError, match="system is 5, but must be one of"):
        cite("apa", 5)  # type: ignore[arg-type]
