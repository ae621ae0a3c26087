"""The rating of one game on one A4 page, as a PDF: inputs, results, the S-curve and the formulas.

The sheet computes nothing: its caller rated the game, by the logistic curve and by FIDE's table. Names are
drawn in whatever script they are written in; `glyphs` says which, and what it does not reach. The same sheet
gives the same bytes on every machine that has the same versions of Python, reportlab and HarfBuzz.

Sources: A. E. Elo, "The Rating of Chessplayers, Past and Present" (1978); FIDE Handbook B.02, 2024.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal, NamedTuple

from petard_worker.ratings.calculator import RESULTS, WIDEST, Point, fide_line, logistic_line
from petard_worker.sheet.elo_curve import DIFFERENCE_TICKS, SCORE_TICKS
from petard_worker.sheet.words import (
    MINUS,
    WORDS,
    date_text,
    number,
    percent,
    plain,
    points,
    raised_parts,
    same_points,
    score,
)

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
Steps = tuple[tuple[float, int], ...]
STEPS: Steps = ((11.0, 1), (9.0, 1), (8.0, 2), (6.0, 8))
"""Sizes in which a text is tried, each with the lines that it may take."""
REASON_STEPS: Steps = ((8.0, 2), (6.0, 8))
REASON_UP = 3.0
"""So much nearer to what it is the reason of than the next row would be."""
ROW = 18.0
BOUNDS = ("<", ">")
RAISED = 2 / 3
"""Size of raised letters, as a share of that of the others."""

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
    expected, change, new_rating, performance: by the logistic curve; those with _fide: by FIDE's table.
    performance: None where it is infinite. k_reason: why K is what it is, in the language of the sheet.
    games: rated before this one; age in years; None where unknown.
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
    performance: float | None
    performance_fide: float
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
    day = raised_parts(date_text(sheet.date, sheet.lang))
    draw_parts(page, RIGHT - parts_width(page, day, 11), 778, day, 11, colour=QUIET)
    page.lines([(LEFT, 766), (RIGHT, 766)], LOGISTIC, 1.5)
    y = draw_inputs(page, sheet, 748)
    y = draw_results(page, sheet, y - 12)
    bottom = draw_formulas(page, sheet)
    draw_curve(page, sheet, bottom + 32, y - 42)
    return page.finished()


def draw_inputs(page: "PdfPage", sheet: Sheet, y: float) -> float:
    """Draw the table of inputs from y downwards and return where it ends."""
    words, lang = WORDS[sheet.lang], sheet.lang
    names = ((words["player"], sheet.player), (words["opponent"], sheet.opponent))
    rows = [
        *((label, name) for label, name in names if name),
        (words["rating"], points(sheet.rating, lang)),
        (words["opponent_rating"], points(sheet.opponent_rating, lang)),
        (words["difference"], points(sheet.rating - sheet.opponent_rating, lang, signed=True)),
        (words["result"], words[RESULTS[sheet.score]]),
    ]
    facts = []
    if sheet.games is not None:
        facts.append((words["games"], str(sheet.games)))
    if sheet.age is not None:
        facts.append((words["age"], plain(sheet.age, lang)))
    for label, value in rows:
        y = draw_row(page, y, label, value)
    y = draw_row(page, y, words["k"], plain(sheet.k, lang), sheet.k_reason)
    for label, value in facts:
        y = draw_row(page, y, label, value)
    return y


def draw_row(page: "PdfPage", y: float, label: str, value: str, reason: str = "") -> float:
    """Draw a label and its value, and below it the reason if there is one; return where the row ends.

    What is too wide is shrunk or wrapped.
    """
    page.text(LEFT + 4, y - 13, label, 9.5, colour=QUIET)
    end = draw_wrapped(page, y, fitted(value, RIGHT - VALUES - 4, STEPS), INK)
    if reason:
        end = draw_wrapped(page, end + REASON_UP, fitted(reason, RIGHT - VALUES - 4, REASON_STEPS), QUIET)
    page.lines([(LEFT, end), (RIGHT, end)], HAIR, 0.5)
    return end


def draw_wrapped(page: "PdfPage", y: float, text: tuple[float, "Sequence[Line]"], colour: str) -> float:
    """Draw lines of that size below y, where the values begin, and return where they end."""
    size, lines = text
    height = ROW if len(lines) == 1 else len(lines) * size * 1.35 + 5
    # Marks can be piled up to any height; they stay in their row.
    page.clip(VALUES - 2, y - height, RIGHT - VALUES + 2, height)
    first = y - 13 if len(lines) == 1 else y - size * 1.25
    for n, line in enumerate(lines):
        page.line_of_text(VALUES, first - n * size * 1.35, line, size, colour)
    page.unclip()
    return y - height


def fitted(text: str, width: float, steps: Steps = STEPS) -> tuple[float, "Sequence[Line]"]:
    """Return the largest size in which the text fits, and its lines; else it ends with an ellipsis."""
    from petard_worker.sheet.glyphs import REGULAR, line_of, wrapped  # noqa: PLC0415

    for size, most in steps:
        lines = wrapped(text, REGULAR, width * 1000 / size)
        if len(lines) <= most:
            return size, lines
    size, most = steps[-1]
    return size, [*lines[: most - 1], line_of(lines[most - 1].shown[:-2] + "…")]


def draw_results(page: "PdfPage", sheet: Sheet, y: float) -> float:
    """Draw the table of results from y downwards and return where it ends."""
    words, lang = WORDS[sheet.lang], sheet.lang
    page.rectangle(LEFT, y - 20, RIGHT - LEFT, 20, SHADE)
    page.text(LEFT + 4, y - 14, words["results"], 10.5, font=BOLD, colour=INK)
    page.text(COLUMNS[0], y - 14, words["by_logistic"], 10.5, font=BOLD, colour=LOGISTIC)
    page.text(COLUMNS[1], y - 14, words["by_fide"], 10.5, font=BOLD, colour=FIDE)
    y -= 20
    change = same_points((sheet.change, sheet.change_fide), lang, signed=True)
    rows = (
        (words["expected"], *expected_texts(sheet)),
        (words["change"], *change),
        (words["new"], *same_points((sheet.new_rating, sheet.new_rating_fide), lang)),
        (words["performance"], *performance_texts(sheet)),
    )
    for label, logistic, by_fide in rows:
        page.text(LEFT + 4, y - 13, label, 9.5, colour=QUIET)
        bold = BOLD if label == words["new"] else "DejaVuSans"
        for x, value in zip(COLUMNS, (logistic, by_fide), strict=True):
            page.text(x, y - 13, value, 11, font=bold, colour=INK)
        y -= ROW
        page.lines([(LEFT, y), (RIGHT, y)], HAIR, 0.5)
    return y


def expected_texts(sheet: Sheet) -> tuple[str, str]:
    """Return the expected scores, also in per cent as the commands show them."""
    lang = sheet.lang
    return (
        f"{score(sheet.expected, lang, 4)} ({percent(sheet.expected, lang)})",
        f"{number(sheet.expected_fide, lang, 2)} ({percent(sheet.expected_fide, lang)})",
    )


def performance_texts(sheet: Sheet) -> tuple[str, str]:
    """Return the performance by the logistic curve, where it is finite, and FIDE's."""
    if sheet.performance is None:
        return WORDS[sheet.lang]["infinite"], points(sheet.performance_fide, sheet.lang)
    logistic, by_fide = same_points((sheet.performance, sheet.performance_fide), sheet.lang)
    return logistic, by_fide


def draw_curve(page: "PdfPage", sheet: Sheet, bottom: float, top: float) -> None:
    """Draw the curve of `elo_curve` with this game on it."""
    words, lang = WORDS[sheet.lang], sheet.lang
    left, right = LEFT + 34, RIGHT - 12
    page.text(LEFT + 4, top + 22, words["curve"], 10.5, font=BOLD, colour=INK)
    page.text(LEFT + 4, top + 8, words["expected"], 8, colour=QUIET)
    centred_text(page, (left + right) / 2, bottom - 22, words["curve_difference"], 8)
    height = top - bottom

    def at(point: Point) -> tuple[float, float]:
        inside = max(-WIDEST, min(WIDEST, point.difference))
        x = left + (inside + WIDEST) / (2 * WIDEST) * (right - left)
        return x, bottom + point.score * height

    for difference in DIFFERENCE_TICKS:
        page.lines([at(Point(difference, 0)), at(Point(difference, 1))], HAIR, 0.5)
        centred_text(page, at(Point(difference, 0))[0], bottom - 11, number(difference, lang, signed=True), 8)
    for tick in SCORE_TICKS:
        page.lines([at(Point(-WIDEST, tick)), at(Point(WIDEST, tick))], HAIR, 0.5)
        right_text(page, left - 5, at(Point(0, tick))[1] - 3, number(tick, lang, 2), 8, colour=QUIET)
    page.lines([(left, top), (left, bottom), (right, bottom)], QUIET, 0.8)
    page.lines([at(point) for point in fide_line()], FIDE, 1.1)
    page.lines([at(point) for point in logistic_line()], LOGISTIC, 1.4)
    both = marks(sheet)
    draw_marks(page, both, at)
    draw_legend(page, sheet, both, left + 8, top - 16)


class Mark(NamedTuple):
    """The game on one of the lines."""

    label: str
    colour: str
    radius: float
    difference: float
    point: Point
    """On the line, at its edge where the difference lies beyond the axis."""


def marks(sheet: Sheet) -> tuple[Mark, Mark]:
    """Return the game on both lines, the logistic one first; on FIDE's where the difference counts."""
    words, lang = WORDS[sheet.lang], sheet.lang
    difference, counted = sheet.rating - sheet.opponent_rating, sheet.difference_fide

    def said(name: str, at: float, expected: str) -> str:
        shown = points(at, lang, signed=True)
        return words["point"].format(name=words[name], difference=shown, score=expected)

    logistic = said("by_logistic", difference, relation("E", score(sheet.expected, lang, 4)))
    by_fide = said("by_fide", counted, relation("PD", number(sheet.expected_fide, lang, 2)))
    return (
        Mark(logistic, LOGISTIC, 2.4, difference, on_line(logistic_line(), difference, sheet.expected)),
        Mark(by_fide, FIDE, 4.2, counted, on_line(fide_line(), counted, sheet.expected_fide)),
    )


def relation(symbol: str, shown: str) -> str:
    """Return what is said of a symbol whose value is shown, or only what it is below or above."""
    return f"{symbol} {shown}" if shown.startswith(BOUNDS) else f"{symbol} = {shown}"


def on_line(line: Sequence[Point], difference: float, expected: float) -> Point:
    """Return where a game stands: at the end of the line if its difference lies beyond."""
    if difference < -WIDEST:
        return line[0]
    return line[-1] if difference > WIDEST else Point(difference, expected)


def draw_marks(page: "PdfPage", both: Sequence[Mark], at: Callable[[Point], tuple[float, float]]) -> None:
    """Mark the game on both lines; the larger point first, to be seen where both agree."""
    for mark in sorted(both, key=lambda mark: -mark.radius):
        page.dashes([at(Point(mark.point.difference, 0)), at(mark.point)], mark.colour, 0.7)
        page.dot(*at(mark.point), mark.radius, mark.colour)


def draw_legend(page: "PdfPage", sheet: Sheet, both: Sequence[Mark], x: float, y: float) -> None:
    """Say which line is which, and what the points on them are, in the empty upper left."""
    beyond = [mark for mark in both if abs(mark.difference) > WIDEST]
    texts = [mark.label for mark in both]
    if beyond:
        difference = points(beyond[0].difference, sheet.lang, signed=True)
        texts.append(WORDS[sheet.lang]["beyond"].format(difference=difference))
    for n, text in enumerate(texts):
        page.rectangle(x, y - 14 * n - 3, page.width(text, 8) + 32, 12, "#ffffff")
        page.text(x + 27 if n < len(both) else x + 2, y - 14 * n, text, 8, colour=INK)
    for n, mark in enumerate(both):
        page.lines([(x + 2, y - 14 * n + 3), (x + 22, y - 14 * n + 3)], mark.colour, 1.4)
        page.dot(x + 12, y - 14 * n + 3, mark.radius, mark.colour)


def draw_formulas(page: "PdfPage", sheet: Sheet) -> float:
    """Draw the formulas with the numbers of this game, and the sources, at the foot; return their top."""
    words, lang = WORDS[sheet.lang], sheet.lang
    for n, line in enumerate(two_lines(words["sources"])):
        draw_parts(page, LEFT + 4, 50 - 10 * n, raised_parts(line), 7, colour=QUIET)
    page.lines([(LEFT, 64), (RIGHT, 64)], HAIR, 0.5)
    for n, formula in enumerate(formulas(sheet, words, lang)):
        draw_parts(page, LEFT + 4, 154 - 14.5 * n, formula, 9, colour=INK)
    page.text(LEFT + 4, 172, words["formulas"], 10.5, font=BOLD, colour=INK)
    return 188


def formulas(sheet: Sheet, words: dict[str, str], lang: str) -> list[list[tuple[str, bool]]]:
    """Return the formulas as pieces of text; the true ones are exponents."""
    result, k, rating = plain(sheet.score, lang), plain(sheet.k, lang), points(sheet.rating, lang)
    minus_d = points(sheet.opponent_rating - sheet.rating, lang)
    expected, by_table = score(sheet.expected, lang, 4), number(sheet.expected_fide, lang, 2)
    new, new_fide = same_points((sheet.new_rating, sheet.new_rating_fide), lang)
    # What is only known to be less than another number cannot be put in for E.
    put_in = "E" if expected.startswith(BOUNDS) else expected
    # French sets a space before a colon and a semicolon.
    colon, semicolon = (" : ", " ; ") if lang == "fr" else (": ", "; ")
    return [
        [
            ("E = 1 / (1 + 10", False),
            (f"{MINUS}D/400", True),
            (") = 1 / (1 + 10", False),
            (f"{minus_d}/400", True),
            (relation(")", expected), False),
        ],
        [(f"R′ = R + K × (S {MINUS} E) = {rating} + {k} × ({result} {MINUS} {put_in}) = {new}", False)],
        [(f"{words['table']}{colon}{by_table}", False)],
        [
            (
                f"R′ = R + K × (S {MINUS} PD) = {rating} + {k} × ({result} {MINUS} {by_table}) = {new_fide}",
                False,
            )
        ],
        [(words["rounding"], False)],
        [(f"{words['dp']}{semicolon}Rp = {points(sheet.performance_fide, lang)}", False)],
    ]


def two_lines(text: str) -> tuple[str, str]:
    """Split a text near its middle, at a space."""
    at = text.rfind(" ", 0, len(text) // 2 + 10)
    return text[:at], text[at + 1 :]


def draw_parts(
    page: "PdfPage", x: float, y: float, parts: Sequence[tuple[str, bool]], size: float, *, colour: str
) -> None:
    """Draw pieces of a text after each other; the true ones raised and small."""
    for text, raised in parts:
        x = page.text(
            x, y + (size / 3 if raised else 0), text, size * RAISED if raised else size, colour=colour
        )


def parts_width(page: "PdfPage", parts: Sequence[tuple[str, bool]], size: float) -> float:
    """Return how wide the pieces are together."""
    return sum(page.width(text, size * RAISED if raised else size) for text, raised in parts)


def right_text(page: "PdfPage", x: float, y: float, text: str, size: float, *, colour: str) -> None:
    """Draw a text that ends at x."""
    page.text(x - page.width(text, size), y, text, size, colour=colour)


def centred_text(page: "PdfPage", x: float, y: float, text: str, size: float) -> None:
    page.text(x - page.width(text, size) / 2, y, text, size, colour=QUIET)
