"""The curve is what Elo and FIDE say, and a document that everyone can read."""

import math
import xml.etree.ElementTree as ET

import pytest

from petard_worker.sheet.elo_curve import svg_curve
from petard_worker.sheet.words import number

SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in parsed(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("lang", ["en", "fr"])
@pytest.mark.parametrize("difference", [None, 0, 132, -412.5, 5000, -1e300])
def test_the_drawing_is_a_valid_document_without_nan(lang: str, difference: float | None) -> None:
    svg = svg_curve(difference, lang=lang)

    root = parsed(svg)

    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    named = [
        element for name in ("title", "desc") for element in root.findall(f"{SVG}{name}") if element.text
    ]
    assert [element.get("id") for element in named] == root.get("aria-labelledby", "").split()
    assert "nan" not in svg.lower()
    assert "inf" not in svg.lower()
    assert "prefers-color-scheme: dark" in svg


def test_the_marker_says_both_values() -> None:
    svg = svg_curve(-600)

    said = texts(svg)

    assert "Logistic (Elo): 0.031" in said
    assert "FIDE table 8.1.2: 0.02" in said
    assert "D = −600" in said
    assert len(list(parsed(svg).iter(f"{SVG}circle"))) == 2


def test_no_difference_no_marker() -> None:
    svg = svg_curve()

    circles = list(parsed(svg).iter(f"{SVG}circle"))

    assert circles == []


def test_a_marker_stands_where_the_line_is() -> None:
    root = parsed(svg_curve(400))
    line = next(e for e in root.iter(f"{SVG}polyline") if e.get("class") == "logistic")
    dot = next(e for e in root.iter(f"{SVG}circle") if e.get("class") == "dot-logistic")

    corners = line.get("points", "").split()

    assert f"{dot.get('cx')},{dot.get('cy')}" in corners


@pytest.mark.parametrize("difference", [-2700, 5000])
def test_a_marker_beyond_the_border_stands_on_the_lines_and_is_said_to(difference: float) -> None:
    root = parsed(svg_curve(difference))
    corners = {
        name: line.get("points", "").split()
        for line in root.iter(f"{SVG}polyline")
        for name in [line.get("class")]
    }
    dots = {dot.get("class"): f"{dot.get('cx')},{dot.get('cy')}" for dot in root.iter(f"{SVG}circle")}

    at = -1 if difference > 0 else 0

    assert (dots["dot-logistic"], dots["dot-fide"]) == (corners["logistic"][at], corners["fide"][at])
    assert any("beyond the axis" in text for text in texts(svg_curve(difference)))
    assert not any("beyond the axis" in text for text in texts(svg_curve(800)))
    assert "Logistic (Elo): < 0.001" in texts(svg_curve(-2700))


def test_everything_lies_inside_the_drawing() -> None:
    root = parsed(svg_curve(2000, width=480, height=280))

    corners = [
        tuple(map(float, corner.split(",")))
        for line in root.iter(f"{SVG}polyline")
        for corner in line.get("points", "").split()
    ]
    dots = [(float(e.get("cx", "")), float(e.get("cy", ""))) for e in root.iter(f"{SVG}circle")]

    assert all(0 <= x <= 480 and 0 <= y <= 280 for x, y in [*corners, *dots])


def test_french_has_its_words_and_decimal_commas() -> None:
    said = texts(svg_curve(150, lang="fr"))

    labels = " ".join(said)

    assert "Écart de classement" in said
    assert "Table FIDE 8.1.2 : 0,70" in said
    assert "0,25" in said
    assert "0.25" not in labels


def test_the_same_curve_has_the_same_bytes() -> None:
    first = svg_curve(33.25, lang="fr")

    second = svg_curve(33.25, lang="fr")

    assert first == second


@pytest.mark.parametrize("difference", [math.nan, math.inf, -math.inf])
def test_a_difference_that_is_no_number_is_refused(difference: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        svg_curve(difference)


def test_an_unknown_language_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"en, fr, not 'de'"):
        svg_curve(lang="de")


def test_a_drawing_too_small_to_read_is_refused() -> None:
    with pytest.raises(ValueError, match="480 x 280"):
        svg_curve(width=100)


@pytest.mark.parametrize(
    ("value", "digits", "lang", "written"),
    [
        (-1.25, 2, "en", "−1.25"),
        (-1.25, 2, "fr", "−1,25"),
        (-0.001, 2, "en", "0.00"),
        (0.0, 0, "en", "0"),
        (1234.5, 1, "fr", "+1234,5"),
        (0.001, 1, "en", "0.0"),
    ],
)
def test_numbers_have_a_true_minus_and_no_signed_zero(
    value: float, digits: int, lang: str, written: str
) -> None:
    text = number(value, lang, digits, signed=True)

    assert text == written
