"""The sheet says what it was given, on one page, in two languages, with the same bytes everywhere."""

import dataclasses
import datetime
import io
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pypdf
import pytest

import petard_worker
from petard_worker.ratings.calculator import fide_line, logistic_line
from petard_worker.sheet.elo_sheet import (
    LEFT,
    RIGHT,
    VALUES,
    Sheet,
    SheetUnavailable,
    fitted,
    sheet_bytes,
)
from petard_worker.sheet.words import date_text

# The calculator page's example, 1200 beats 1800 with K = 40, as the formulas and FIDE's table have it.
SHEET = Sheet(
    player="Alice",
    opponent="Bob",
    rating=1200,
    opponent_rating=1800,
    score=1,
    k=40,
    k_reason="fewer than 30 games",
    expected=0.030653430031715508,
    expected_fide=0.08,
    difference_fide=-400,
    change=38.77386279873138,
    change_fide=36.8,
    new_rating=1238.7738627987314,
    new_rating_fide=1236.8,
    performance=None,
    performance_fide=2600,
    date=datetime.date(2026, 11, 30),
    games=12,
    age=15,
)
HOSTILE = dataclasses.replace(
    SHEET, player="محمد <b>&</b> \x00\u202e\ud800 김", opponent="विश्वनाथन् 李 👩\u200d🚀 שלום", lang="fr"
)


def read(sheet: Sheet) -> pypdf.PdfReader:
    return pypdf.PdfReader(io.BytesIO(sheet_bytes(sheet)), strict=True)


def text_of(sheet: Sheet) -> str:
    return read(sheet).pages[0].extract_text()


def rows_of(sheet: Sheet) -> list[str]:
    return [re.sub(r"\s+", " ", row).strip() for row in text_of(sheet).splitlines()]


def test_the_sheet_is_one_page_of_a4() -> None:
    pages = read(SHEET).pages

    assert len(pages) == 1
    assert [round(float(side)) for side in pages[0].mediabox] == [0, 0, 595, 842]


def test_the_english_sheet_says_inputs_results_formulas_date_and_sources() -> None:
    rows = rows_of(SHEET)

    for row in (
        "Elo rating of one game 30 November 2026",
        "Player Alice",
        "Opponent Bob",
        "Rating R 1200",
        "Opponent's rating Ro 1800",
        "Difference D = R − Ro −600",
        "Result win, S = 1",
        "Factor K 40",
        "fewer than 30 games",
        "Games rated before 12",
        "Age 15",
        "Results Logistic (Elo) FIDE table 8.1.2",
        "Expected score 0.0307 (3.07 %) 0.08 (8.00 %)",
        "Change +38.77 +36.80",
        "New rating 1238.77 1236.80",
        "Performance of this game none (infinite) 2600",
        "R′ = R + K × (S − E) = 1200 + 40 × (1 − 0.0307) = 1238.77",
        "R′ = R + K × (S − PD) = 1200 + 40 × (1 − 0.08) = 1236.80",
    ):
        assert row in rows
    everything = " ".join(rows)
    assert "The Rating of Chessplayers, Past and Present (1978)" in everything
    assert "FIDE Handbook B.02" in everything


def test_the_french_sheet_has_its_words_and_decimal_commas() -> None:
    sheet = dataclasses.replace(
        SHEET, lang="fr", score=0.5, k_reason="moins de 30 parties", change=-0.5, games=None, age=None
    )

    rows = rows_of(sheet)

    for row in (
        "Classement Elo d’une partie 30 novembre 2026",
        "Joueur Alice",
        "Écart D = R − Ro −600",
        "Résultat nulle, S = 0,5",
        "Coefficient K 40",
        "moins de 30 parties",
        "Score attendu 0,0307 (3,07 %) 0,08 (8,00 %)",
        "Variation −0,50 +36,80",
        "Nouveau classement 1238,77 1236,80",
    ):
        assert row in rows
    assert not any("Âge" in row or "Parties classées" in row for row in rows)
    assert not any("0.03" in row or "1238.77" in row for row in rows)


def test_the_document_tells_its_language_and_title() -> None:
    reader = read(HOSTILE)

    assert reader.root_object["/Lang"] == "fr"
    assert reader.metadata is not None
    assert str(reader.metadata.title).startswith("Classement Elo d’une partie: ")
    assert "[U+0000]" in str(reader.metadata.title)


@pytest.mark.parametrize(
    ("lang", "day", "text"),
    [
        ("en", datetime.date(2024, 2, 29), "29 February 2024"),
        ("fr", datetime.date(2025, 8, 1), "1er août 2025"),
        ("fr", datetime.date(2025, 12, 31), "31 décembre 2025"),
    ],
)
def test_dates_are_in_the_words_of_the_language(lang: str, day: datetime.date, text: str) -> None:
    written = date_text(day, lang)

    assert written == text


@pytest.mark.parametrize(
    "name",
    ["Łukasz Þór", "Ελένη", "Наталія", "ნონა", "Լևոն", "丁立人", "さくら", "김민준", "สมชาย", "😀", "𝓐𝓵𝓲"],
)
def test_names_in_other_scripts_can_be_read_back(name: str) -> None:
    sheet = dataclasses.replace(SHEET, player=name, opponent=f"{name} {name}")

    rows = rows_of(sheet)

    assert f"Player {name}" in rows
    assert f"Opponent {name} {name}" in rows


def test_right_to_left_and_indic_names_are_in_the_page_with_their_fonts_embedded() -> None:
    page = read(HOSTILE).pages[0]

    fonts = [font.get_object() for font in page["/Resources"]["/Font"].values()]  # type: ignore[index]

    names = {font["/BaseFont"].partition("+")[2] for font in fonts if font["/Subtype"] == "/TrueType"}
    assert {"DejaVuSans", "NotoSansDevanagari-Regular", "DroidSansFallback", "NotoEmoji-Regular"} <= names
    assert all("/FontFile2" in f["/FontDescriptor"] for f in fonts if f["/Subtype"] == "/TrueType")
    # शि + व + न + ा ...: the syllables of several glyphs say what they are.
    assert f"/ActualText <FEFF{'वि'.encode('utf-16-be').hex().upper()}>".encode() in sheet_bytes(HOSTILE)


def test_control_characters_and_markup_are_drawn_as_text() -> None:
    sheet = dataclasses.replace(
        SHEET, player="<b>x</b> & \x00\u202e", opponent=") Tj (\\", k_reason="a\nb\ud800"
    )

    rows = rows_of(sheet)

    assert "Player <b>x</b> & [U+0000][U+202E]" in rows
    assert "Opponent ) Tj (\\" in rows
    assert "a[U+000A]b[U+D800]" in rows


def test_a_character_of_no_font_is_drawn_as_its_code_point() -> None:
    sheet = dataclasses.replace(SHEET, player="x𓀀")

    rows = rows_of(sheet)

    assert "Player x[U+13000]" in rows


@pytest.mark.parametrize("name", ["W" * 64, "𓀀" * 64, "李" * 64, "ab " * 21 + "c", "ض" * 64])
def test_long_names_stay_inside_the_page(name: str) -> None:
    size, lines = fitted(name, RIGHT - VALUES)

    assert size >= 6
    assert all(line.advance * size / 1000 <= RIGHT - VALUES for line in lines)
    assert not any("…" in line.shown for line in lines)
    reader = read(dataclasses.replace(SHEET, player=name, opponent=name, k_reason=name))
    assert len(reader.pages) == 1
    starts = [[float(n) for n in tm.split()] for tm in re.findall(r"1 0 0 1 (\S+ \S+) Tm", content(reader))]
    assert all(LEFT <= x < RIGHT and 30 < y < 812 for x, y in starts)


def test_piled_up_marks_stay_in_their_row() -> None:
    sheet = dataclasses.replace(SHEET, player="a" + "\u0301" * 63)

    clips = re.findall(r"n (\S+) (\S+) (\S+) (\S+) re W\* n\s(.*?)Q", content(read(sheet)), re.DOTALL)

    heights = [float(height) for _, _, _, height, drawn in clips if drawn.count(" Tm") > 60]
    assert heights == [18]


def content(reader: pypdf.PdfReader) -> str:
    contents = reader.pages[0].get_contents()
    assert contents is not None
    return contents.get_data().decode("latin-1")


def test_the_largest_texts_leave_room_for_the_curve() -> None:
    longest = "W" * 500
    reader = read(dataclasses.replace(SHEET, player=longest, opponent=longest, k_reason=longest))

    heights = {float(y) for _, y in re.findall(r"(\S+) (\S+) l\b", content(reader))}

    assert len({height for height in heights if 200 < height < 310}) > 90, "the curve is flat"


def test_the_curve_on_the_sheet_is_the_one_of_the_drawing() -> None:
    drawn = content(read(SHEET))

    lines = [len(re.findall(r" l\b", segment)) for segment in re.findall(r"n [\d.]+ [\d.]+ m[^mS]+S", drawn)]

    assert len(logistic_line()) - 1 in lines
    assert len(fide_line()) - 1 in lines


def test_the_same_sheet_has_the_same_bytes_in_one_process() -> None:
    first = sheet_bytes(HOSTILE)
    sheet_bytes(dataclasses.replace(SHEET, player="விஜய் другой"))

    second = sheet_bytes(HOSTILE)

    assert first == second


PROGRAM = """
import datetime, locale, sys, time
try:
    locale.setlocale(locale.LC_ALL, "")
except locale.Error:
    pass
from petard_worker.sheet.elo_sheet import Sheet, sheet_bytes
sys.stdout.buffer.write(sheet_bytes(eval(sys.argv[1])))
"""


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "77", "TZ": "America/Anchorage", "LC_ALL": "sr_RS.UTF-8", "LANG": "sr_RS.UTF-8"},
        {"PYTHONHASHSEED": "3", "TZ": "UTC", "LC_ALL": "fr_FR.UTF-8", "PYTHONOPTIMIZE": "1"},
    ],
)
def test_the_same_sheet_has_the_same_bytes_in_another_process(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ascii(HOSTILE)],
        env={**os.environ, **environment},
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )

    assert done.stdout == sheet_bytes(HOSTILE)


def test_the_document_names_no_file_no_clock_and_is_not_compressed() -> None:
    document = sheet_bytes(HOSTILE)

    assert str(Path(petard_worker.__file__).parents[1]).encode() not in document
    assert str(Path.home()).encode() not in document
    assert b"/FlateDecode" not in document
    dates = set(re.findall(rb"\(D:[^)]*\)", document))
    assert dates == {b"(D:20261130)"}


def test_another_date_makes_another_document() -> None:
    other = dataclasses.replace(SHEET, date=datetime.date(2026, 12, 1))

    assert sheet_bytes(other) != sheet_bytes(SHEET)


@pytest.mark.parametrize("missing", ["reportlab", "uharfbuzz"])
def test_without_the_extra_the_error_says_how_to_install_it(missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import datetime\n"
        "from petard_worker.sheet.elo_sheet import Sheet, SheetUnavailable, sheet_bytes\n"
        "try:\n"
        "    sheet_bytes(eval(sys.argv[1]))\n"
        "except SheetUnavailable as error:\n"
        "    print(error)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, ascii(SHEET)], capture_output=True, text=True, check=True
    )

    assert done.stdout == "petard elo pdf needs the extra: pip install 'petard[pdf]'\n"
    assert issubclass(SheetUnavailable, Exception)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("rating", math.nan, "rating must be a number"),
        ("change", -math.inf, "change must be a number"),
        ("performance_fide", 1e7, "performance_fide must be a number"),
        ("score", 0.7, "score must be 1, 0.5 or 0"),
        ("lang", "de", "one of en, fr"),
        ("player", "x" * 501, "player has 501 characters"),
    ],
)
def test_a_sheet_that_cannot_be_drawn_is_refused(field: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SHEET, **{field: value})


FAR = dataclasses.replace(
    SHEET,
    rating=100,
    opponent_rating=2800,
    expected=1 / (1 + 10 ** (2700 / 400)),
    change=19.9999964,
    change_fide=18.4,
    new_rating=119.9999964,
    new_rating_fide=118.4,
    performance_fide=3600,
)


def dots_of(reader: pypdf.PdfReader) -> list[tuple[float, float]]:
    """The points that are drawn, by their centres: a circle begins at its right and turns to its top."""
    circles = re.findall(r"n\s+(\S+) (\S+) m\s+\S+ \S+ \S+ \S+ (\S+) (\S+) c", content(reader))
    return [(float(top_x), float(right_y)) for _, right_y, top_x, _ in circles]


def test_a_point_beyond_the_axis_is_on_the_curve_at_its_edge_and_said_to_be_beyond() -> None:
    reader = read(FAR)

    *_, first = re.findall(r"n (\S+) (\S+) m(?: \S+ \S+ l){160}", content(reader))
    start = tuple(map(float, first))
    assert any(dot == pytest.approx(start, abs=0.01) for dot in dots_of(reader))
    assert "D = −2700 lies beyond the axis: its point is at the edge." in rows_of(FAR)
    assert "beyond the axis" not in text_of(SHEET)


def test_a_score_that_is_nearly_nothing_does_not_look_like_nothing() -> None:
    rows = rows_of(FAR)

    assert "Expected score < 0.0001 (< 0.01 %) 0.08 (8.00 %)" in rows
    assert "Logistic (Elo): D = −2700, E < 0.0001" in rows
    assert "R′ = R + K × (S − E) = 100 + 40 × (1 − E) = 120.00" in rows
    assert not any("0.0000" in row for row in rows)


def test_numbers_side_by_side_have_as_many_decimals() -> None:
    sheet = dataclasses.replace(SHEET, change=10, change_fide=14.4, lang="fr")

    assert "Variation +10,00 +14,40" in rows_of(sheet)
    assert "Variation +10 +14" in rows_of(dataclasses.replace(sheet, change_fide=14))


def test_a_finite_performance_stands_in_both_columns() -> None:
    sheet = dataclasses.replace(SHEET, score=0.5, performance=1800.0000000003, performance_fide=1800)

    assert "Performance of this game 1800 1800" in rows_of(sheet)


def test_the_factor_is_written_as_large_as_the_other_values_whatever_its_reason() -> None:
    reader = read(dataclasses.replace(SHEET, rating=1301, k=39, k_reason="a long reason " * 12))
    sizes: dict[str, set[float]] = {}

    def note(text: str, _cm: object, _tm: object, _font: object, size: float) -> None:
        sizes.setdefault(text.strip(), set()).add(size)

    reader.pages[0].extract_text(visitor_text=note)

    assert sizes["39"] == sizes["1301"]


def test_both_axes_are_named_and_both_points_explained() -> None:
    rows = rows_of(SHEET)

    assert "Expected score" in rows
    assert "Rating difference" in rows
    assert "Logistic (Elo): D = −600, E = 0.0307" in rows
    assert "FIDE table 8.1.2: D = −400, PD = 0.08" in rows


def test_letters_of_the_french_first_are_raised() -> None:
    reader = read(dataclasses.replace(SHEET, lang="fr", date=datetime.date(2026, 10, 1)))
    pieces: list[tuple[str, float]] = []

    def note(text: str, _cm: object, _tm: object, _font: object, size: float) -> None:
        if text.strip():
            pieces.append((text.strip(), round(size, 2)))

    reader.pages[0].extract_text(visitor_text=note)

    assert ("er", 7.33) in pieces
    assert ("1", 11) in pieces
