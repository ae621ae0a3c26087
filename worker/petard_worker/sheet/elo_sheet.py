"""The rating of one game on one A4 page, as a PDF: inputs, results, the S-curve and the formulas.

The sheet computes nothing: its caller rated the game, by the logistic curve and by FIDE's table. Names are
drawn in whatever script they are written in; `glyphs` says which, and what it does not reach. The same sheet
gives the same bytes on every machine that has the same versions of Python, reportlab and HarfBuzz.

Sources: A. E. Elo, "The Rating of Chessplayers, Past and Present" (1978); FIDE Handbook B.02, 2024.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal

from petard_worker.ratings.calculator import RESULTS, WIDEST, Point, fide_line, logistic_line
from petard_worker.sheet.elo_curve import DIFFERENCE_TICKS, SCORE_TICKS
from petard_worker.sheet.words import MINUS, WORDS, date_text, number, plain, points

if TYPE_CHECKING:
    from petard_worker.sheet.glyphs import Line
    from petard_worker.sheet.pdf_page import PdfPage

INK = "#1f2733"
QUIET = "#5b6470"
HAIR = "#d9dde3"
SHADE = "#f3f5f8"
LOGISTIC = "#0072b2"
FIDE = "#c04f00"
BOLD = "DejaVuSans-Bold"

LEFT = 50.0
RIGHT = 545.0
VALUES = 205.0
"""Where the values of the inputs begin."""
COLUMNS = (205.0, 375.0)
"""Where the results of the logistic curve and of FIDE's table begin."""
STEPS = ((11.0, 1), (9.0, 1), (8.0, 2), (6.0, 8))
"""Sizes in which a text is tried, each with the lines that it may take."""
ROW = 18.0

LARGEST = 1e6
"""No rating is near it, and the page has no place for longer numbers."""
LONGEST = 500
"""Characters of a text. Names have 64 at most."""


class SheetUnavailable(Exception):  # noqa: N818
    """petard elo pdf needs the extra: pip install 'petard[pdf]'."""

    def __init__(self) -> None:
        super().__init__("petard elo pdf needs the extra: pip install 'petard[pdf]'")


@dataclass(frozen=True)
class Sheet:
    """One rated game, seen by one player. Ratings, changes and performance are in rating points.

    player, opponent: their names, "" for somebody who is not named on the page.
    score: 1, 0.5 or 0. difference_fide: the difference of ratings that FIDE counts.
    expected, change, new_rating: by the logistic curve; those with _fide: by FIDE's table. k_reason: why K is
    what it is, in the language of the sheet. games: rated before this one; age in years; None where unknown.
    Raises ValueError for a number that is not finite or beyond a million, a text of more than 500
    characters, an unknown result and an unknown language.
    """

    player: str
    opponent: str
    rating: float
    opponent_rating: float
    score: float
    k: float
    k_reason: str
    expected: float
    expected_fide: float
    difference_fide: float
    change: float
    change_fide: float
    new_rating: float
    new_rating_fide: float
    performance: float
    date: date
    games: int | None = None
    age: float | None = None
    lang: Literal["en", "fr"] = "en"

    def __post_init__(self) -> None:
        if self.lang not in WORDS:
            raise ValueError(f"language must be one of {', '.join(WORDS)}, not {self.lang!r}")
        if self.score not in RESULTS:
            raise ValueError(f"score must be 1, 0.5 or 0, not {self.score!r}")
        for name, value in vars(self).items():
            if isinstance(value, int | float) and not abs(value) <= LARGEST:
                raise ValueError(
                    f"{name} must be a number between {-LARGEST:.0f} and {LARGEST:.0f}, not {value}"
                )
            if isinstance(value, str) and len(value) > LONGEST:
                raise ValueError(f"{name} has {len(value)} characters; the page has place for {LONGEST}")


def sheet_bytes(sheet: Sheet) -> bytes:
    """Return the sheet as a PDF document. Raises SheetUnavailable without the extra pdf."""
    try:
        from petard_worker.sheet.glyphs import line_of  # noqa: PLC0415
        from petard_worker.sheet.pdf_page import PdfPage  # noqa: PLC0415
    except ImportError as error:
        raise SheetUnavailable from error
    words = WORDS[sheet.lang]
    names = " – ".join(line_of(name).shown for name in (sheet.player, sheet.opponent) if name)
    title = f"{words['title']}: {names}" if names else words["title"]
    page = PdfPage(f"{title}, {sheet.date.isoformat()}", sheet.date, sheet.lang)
    page.text(LEFT, 778, words["title"], 20, font=BOLD, colour=INK)
    right_text(page, RIGHT, 778, date_text(sheet.date, sheet.lang), 11, colour=QUIET)
    page.lines([(LEFT, 766), (RIGHT, 766)], LOGISTIC, 1.5)
    y = draw_inputs(page, sheet, 748)
    y = draw_results(page, sheet, y - 12)
    bottom = draw_formulas(page, sheet)
    draw_curve(page, sheet, bottom + 24, y - 30)
    return page.finished()


def draw_inputs(page: "PdfPage", sheet: Sheet, y: float) -> float:
    """Draw the table of inputs from y downwards and return where it ends."""
    words, lang = WORDS[sheet.lang], sheet.lang
    k = plain(sheet.k, lang)
    names = ((words["player"], sheet.player), (words["opponent"], sheet.opponent))
    rows = [
        *((label, name) for label, name in names if name),
        (words["rating"], points(sheet.rating, lang)),
        (words["opponent_rating"], points(sheet.opponent_rating, lang)),
        (words["difference"], points(sheet.rating - sheet.opponent_rating, lang, signed=True)),
        (words["result"], words[RESULTS[sheet.score]]),
        (words["k"], f"{k} ({sheet.k_reason})" if sheet.k_reason else k),
    ]
    if sheet.games is not None:
        rows.append((words["games"], str(sheet.games)))
    if sheet.age is not None:
        rows.append((words["age"], plain(sheet.age, lang)))
    for label, value in rows:
        y = draw_row(page, y, label, value)
    return y


def draw_row(page: "PdfPage", y: float, label: str, value: str) -> float:
    """Draw a label and its value, shrunk or wrapped to the width, below y, and return where the row ends."""
    size, lines = fitted(value, RIGHT - VALUES - 4)
    height = ROW if len(lines) == 1 else len(lines) * size * 1.35 + 5
    page.text(LEFT + 4, y - 13, label, 9.5, colour=QUIET)
    # Marks can be piled up to any height; they stay in their row.
    page.clip(VALUES - 2, y - height, RIGHT - VALUES + 2, height)
    first = y - 13 if len(lines) == 1 else y - size * 1.25
    for n, line in enumerate(lines):
        page.line_of_text(VALUES, first - n * size * 1.35, line, size, INK)
    page.unclip()
    page.lines([(LEFT, y - height), (RIGHT, y - height)], HAIR, 0.5)
    return y - height


def fitted(text: str, width: float) -> tuple[float, "Sequence[Line]"]:
    """Return the largest size in which the text fits, and its lines; else it ends with an ellipsis."""
    from petard_worker.sheet.glyphs import REGULAR, line_of, wrapped  # noqa: PLC0415

    for size, most in STEPS:
        lines = wrapped(text, REGULAR, width * 1000 / size)
        if len(lines) <= most:
            return size, lines
    size, most = STEPS[-1]
    return size, [*lines[: most - 1], line_of(lines[most - 1].shown[:-2] + "…")]


def draw_results(page: "PdfPage", sheet: Sheet, y: float) -> float:
    """Draw the table of results from y downwards and return where it ends."""
    words, lang = WORDS[sheet.lang], sheet.lang
    page.rectangle(LEFT, y - 20, RIGHT - LEFT, 20, SHADE)
    page.text(LEFT + 4, y - 14, words["results"], 10.5, font=BOLD, colour=INK)
    page.text(COLUMNS[0], y - 14, words["by_logistic"], 10.5, font=BOLD, colour=LOGISTIC)
    page.text(COLUMNS[1], y - 14, words["by_fide"], 10.5, font=BOLD, colour=FIDE)
    y -= 20
    rows = (
        (words["expected"], number(sheet.expected, lang, 4), number(sheet.expected_fide, lang, 2)),
        (
            words["change"],
            points(sheet.change, lang, signed=True),
            points(sheet.change_fide, lang, signed=True),
        ),
        (words["new"], points(sheet.new_rating, lang), points(sheet.new_rating_fide, lang)),
        (words["performance"], "", points(sheet.performance, lang)),
    )
    for label, logistic, by_fide in rows:
        page.text(LEFT + 4, y - 13, label, 9.5, colour=QUIET)
        bold = BOLD if label == words["new"] else "DejaVuSans"
        for x, value in zip(COLUMNS, (logistic, by_fide), strict=True):
            page.text(x, y - 13, value, 11, font=bold, colour=INK)
        y -= ROW
        page.lines([(LEFT, y), (RIGHT, y)], HAIR, 0.5)
    return y


def draw_curve(page: "PdfPage", sheet: Sheet, bottom: float, top: float) -> None:
    """Draw the curve of `elo_curve` with this game on it."""
    words, lang = WORDS[sheet.lang], sheet.lang
    left, right = LEFT + 34, RIGHT - 12
    page.text(LEFT + 4, top + 10, words["curve"], 10.5, font=BOLD, colour=INK)
    height = top - bottom

    def at(point: Point) -> tuple[float, float]:
        inside = max(-WIDEST, min(WIDEST, point.difference))
        x = left + (inside + WIDEST) / (2 * WIDEST) * (right - left)
        return x, bottom + point.score * height

    for difference in DIFFERENCE_TICKS:
        page.lines([at(Point(difference, 0)), at(Point(difference, 1))], HAIR, 0.5)
        centred_text(page, at(Point(difference, 0))[0], bottom - 11, number(difference, lang, signed=True), 8)
    for score in SCORE_TICKS:
        page.lines([at(Point(-WIDEST, score)), at(Point(WIDEST, score))], HAIR, 0.5)
        right_text(page, left - 5, at(Point(0, score))[1] - 3, number(score, lang, 2), 8, colour=QUIET)
    page.lines([(left, top), (left, bottom), (right, bottom)], QUIET, 0.8)
    page.lines([at(point) for point in fide_line()], FIDE, 1.1)
    page.lines([at(point) for point in logistic_line()], LOGISTIC, 1.4)
    draw_marker(page, sheet, at)
    for row, (label, colour) in enumerate(((words["by_logistic"], LOGISTIC), (words["by_fide"], FIDE))):
        y = top - 16 - 14 * row
        page.rectangle(left + 8, y - 3, 100, 12, "#ffffff")
        page.lines([(left + 10, y + 3), (left + 30, y + 3)], colour, 2)
        page.text(left + 35, y, label, 8.5, colour=INK)


def draw_marker(page: "PdfPage", sheet: Sheet, at: Callable[[Point], tuple[float, float]]) -> None:
    """Mark the game on both lines; on FIDE's where the difference counts."""
    marks = (
        (sheet.difference_fide, sheet.expected_fide, FIDE, 4.2),
        (sheet.rating - sheet.opponent_rating, sheet.expected, LOGISTIC, 2.4),
    )
    for difference, score, colour, radius in marks:
        page.dashes([at(Point(difference, 0)), at(Point(difference, score))], colour, 0.7)
        page.dot(*at(Point(difference, score)), radius, colour)


def draw_formulas(page: "PdfPage", sheet: Sheet) -> float:
    """Draw the formulas with the numbers of this game, and the sources, at the foot; return their top."""
    words, lang = WORDS[sheet.lang], sheet.lang
    for n, line in enumerate(two_lines(words["sources"])):
        page.text(LEFT + 4, 50 - 10 * n, line, 7, colour=QUIET)
    page.lines([(LEFT, 64), (RIGHT, 64)], HAIR, 0.5)
    for n, formula in enumerate(formulas(sheet, words, lang)):
        x = LEFT + 4
        for text, raised in formula:
            x = page.text(x, 154 - 14.5 * n + (3 if raised else 0), text, 6 if raised else 9, colour=INK)
    page.text(LEFT + 4, 172, words["formulas"], 10.5, font=BOLD, colour=INK)
    return 188


def formulas(sheet: Sheet, words: dict[str, str], lang: str) -> list[list[tuple[str, bool]]]:
    """Return the formulas as pieces of text; the true ones are exponents."""
    score, k, rating = plain(sheet.score, lang), plain(sheet.k, lang), points(sheet.rating, lang)
    minus_d = points(sheet.opponent_rating - sheet.rating, lang)
    expected, by_table = number(sheet.expected, lang, 4), number(sheet.expected_fide, lang, 2)
    new, new_fide = points(sheet.new_rating, lang), points(sheet.new_rating_fide, lang)
    # French sets a space before a colon and a semicolon.
    colon, semicolon = (" : ", " ; ") if lang == "fr" else (": ", "; ")
    return [
        [
            ("E = 1 / (1 + 10", False),
            (f"{MINUS}D/400", True),
            (") = 1 / (1 + 10", False),
            (f"{minus_d}/400", True),
            (f") = {expected}", False),
        ],
        [(f"R′ = R + K × (S {MINUS} E) = {rating} + {k} × ({score} {MINUS} {expected}) = {new}", False)],
        [(f"{words['table']}{colon}{by_table}", False)],
        [
            (
                f"R′ = R + K × (S {MINUS} PD) = {rating} + {k} × ({score} {MINUS} {by_table}) = {new_fide}",
                False,
            )
        ],
        [(words["rounding"], False)],
        [(f"{words['dp']}{semicolon}Rp = {points(sheet.performance, lang)}", False)],
    ]


def two_lines(text: str) -> tuple[str, str]:
    """Split a text near its middle, at a space."""
    at = text.rfind(" ", 0, len(text) // 2 + 10)
    return text[:at], text[at + 1 :]


def right_text(page: "PdfPage", x: float, y: float, text: str, size: float, *, colour: str) -> None:
    """Draw a text that ends at x."""
    page.text(x - page.width(text, size), y, text, size, colour=colour)


def centred_text(page: "PdfPage", x: float, y: float, text: str, size: float) -> None:
    page.text(x - page.width(text, size) / 2, y, text, size, colour=QUIET)
