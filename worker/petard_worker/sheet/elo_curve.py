"""The S-curve of Elo as a drawing: the expected score against the difference of two ratings.

Two lines: the logistic of Elo (1978) on the scale of 400, smooth, and FIDE's table 8.1.2, in steps, as it
stands.

The same input gives the same bytes.
"""

import math
from dataclasses import dataclass
from typing import ClassVar
from xml.sax.saxutils import escape

from petard_worker.ratings import fide
from petard_worker.ratings.calculator import WIDEST, Point, fide_line, logistic, logistic_line
from petard_worker.sheet.words import WORDS, number, score

DIFFERENCE_TICKS = tuple(range(-WIDEST, WIDEST + 1, 200))
SCORE_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
LEAST_WIDTH = 480
LEAST_HEIGHT = 280

# Okabe and Ito's blue and vermilion, told apart by colour-blind people too, and lighter ones for dark pages.
STYLE = """
    .page { fill: #ffffff } .grid { stroke: #d9dde3 } .axis { stroke: #5b6470 } text { fill: #1f2733 }
    .logistic { stroke: #0072b2 } .fide { stroke: #d55e00 } .marker { stroke: #1f2733 }
    .dot-logistic { fill: #0072b2 } .dot-fide { fill: #d55e00 }
    @media (prefers-color-scheme: dark) {
      .page { fill: #14181f } .grid { stroke: #333c49 } .axis { stroke: #9aa5b4 } text { fill: #e8ecf2 }
      .logistic { stroke: #56b4e9 } .fide { stroke: #ff9a4d } .marker { stroke: #e8ecf2 }
      .dot-logistic { fill: #56b4e9 } .dot-fide { fill: #ff9a4d }
    }
  """


def words(lang: str) -> dict[str, str]:
    """Return what the drawing says; ValueError for a language that it does not speak."""
    if lang not in WORDS:
        raise ValueError(f"language must be one of {', '.join(WORDS)}, not {lang!r}")
    return WORDS[lang]


def difference_text(difference: float, lang: str) -> str:
    """Return a difference with its sign, with one decimal where it is no whole number."""
    return number(difference, lang, 0 if difference == round(difference) else 1, signed=True)


def svg_curve(
    difference: float | None = None, *, width: int = 720, height: int = 400, lang: str = "en"
) -> str:
    """Return the curve as a standalone SVG document, with a marker at the difference if one is given.

    difference: rating points, the own rating minus the other; beyond ±800 the marker stands on the lines at
    the border, which is said, and the values in words are still those of the difference. width, height:
    pixels. lang: en or fr. Raises ValueError for a difference that is no finite number, a drawing too small
    to read and an unknown language.
    """
    said = words(lang)
    if difference is not None and not math.isfinite(difference):
        raise ValueError(f"difference must be a finite number of rating points, not {difference}")
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        raise ValueError(
            f"a curve of {width} x {height} cannot be read: at least {LEAST_WIDTH} x {LEAST_HEIGHT} is needed"
        )
    frame = Frame(width, height)
    parts = [
        *opening(frame, described(said, difference, lang), said["curve"]),
        *axes(frame, said, lang),
        frame.path("fide", fide_line()),
        frame.path("logistic", logistic_line()),
        *([] if difference is None else marker(frame, difference)),
        *legend(frame, said, difference, lang),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


@dataclass(frozen=True)
class Frame:
    """The size of the drawing, in pixels, and where its plot lies in it."""

    width: int
    height: int
    left: ClassVar[int] = 64
    right: ClassVar[int] = 20
    top: ClassVar[int] = 24
    bottom: ClassVar[int] = 56

    def x(self, difference: float) -> float:
        inside = max(-WIDEST, min(WIDEST, difference))
        return self.left + (inside + WIDEST) / (2 * WIDEST) * (self.width - self.left - self.right)

    def y(self, share: float) -> float:
        return self.top + (1 - share) * (self.height - self.top - self.bottom)

    def path(self, name: str, points: tuple[Point, ...]) -> str:
        corners = " ".join(f"{self.x(p.difference):.2f},{self.y(p.score):.2f}" for p in points)
        return f'  <polyline class="{name}" points="{corners}" fill="none" stroke-width="2"/>'

    def line(self, name: str, start: Point, end: Point, more: str = "") -> str:
        x1, y1, x2, y2 = (
            self.x(start.difference),
            self.y(start.score),
            self.x(end.difference),
            self.y(end.score),
        )
        return f'  <line class="{name}" x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"{more}/>'


def described(said: dict[str, str], difference: float | None, lang: str) -> str:
    """Return in words what the drawing shows, for those who do not see it."""
    text = said["curve_desc"].format(
        low=number(-WIDEST, lang),
        high=number(WIDEST, lang, signed=True),
        half=number(0.5, lang, 1),
        logistic=number(logistic(400), lang, 3),
        fide=number(fide.expected_score(400), lang, 2),
    )
    if difference is None:
        return text
    at = said["curve_at"].format(
        difference=difference_text(difference, lang),
        logistic=score(logistic(difference), lang, 3),
        fide=number(fide.expected_score(difference), lang, 2),
    )
    return f"{text} {at}"


def opening(frame: Frame, description: str, title: str) -> list[str]:
    size = f'width="{frame.width}" height="{frame.height}" viewBox="0 0 {frame.width} {frame.height}"'
    named = 'role="img" aria-labelledby="elo-title elo-desc"'
    type_size = 'font-family="system-ui, sans-serif" font-size="13"'
    return [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {named} {type_size}>',
        f'  <title id="elo-title">{escape(title)}</title>',
        f'  <desc id="elo-desc">{escape(description)}</desc>',
        f"  <style>{STYLE}</style>",
        f'  <rect class="page" width="{frame.width}" height="{frame.height}"/>',
    ]


def axes(frame: Frame, said: dict[str, str], lang: str) -> list[str]:
    parts = []
    for difference in DIFFERENCE_TICKS:
        parts.append(frame.line("grid", Point(difference, 0), Point(difference, 1)))
        label = number(difference, lang, signed=True)
        parts.append(text_at(frame.x(difference), frame.y(0) + 18, label, "middle"))
    for tick in SCORE_TICKS:
        parts.append(frame.line("grid", Point(-WIDEST, tick), Point(WIDEST, tick)))
        parts.append(text_at(frame.left - 8, frame.y(tick) + 4, number(tick, lang, 2), "end"))
    middle = (frame.y(0) + frame.y(1)) / 2
    return [
        *parts,
        frame.line("axis", Point(-WIDEST, 0), Point(WIDEST, 0)),
        frame.line("axis", Point(-WIDEST, 0), Point(-WIDEST, 1)),
        text_at(frame.x(0), frame.height - 12, said["curve_difference"], "middle"),
        text_at(16, middle, said["expected"], "middle", f' transform="rotate(-90 16 {middle:.2f})"'),
    ]


def marker(frame: Frame, difference: float) -> list[str]:
    drawn = max(-WIDEST, min(WIDEST, difference))
    x = frame.x(drawn)
    # The larger dot is drawn first and still seen where both values agree.
    dots = (
        ("fide", fide.expected_score(drawn), 6.5),
        ("logistic", logistic(drawn), 4),
    )
    highest = max(share for _, share, _ in dots)
    dashes = ' stroke-dasharray="4 4"'
    return [
        frame.line("marker", Point(drawn, 0), Point(drawn, highest), dashes),
        *(
            f'  <circle class="dot-{name}" cx="{x:.2f}" cy="{frame.y(share):.2f}" r="{radius}"/>'
            for name, share, radius in dots
        ),
    ]


def legend(frame: Frame, said: dict[str, str], difference: float | None, lang: str) -> list[str]:
    """Return the names of the lines, with their values where there is a marker, in the empty upper left."""
    names = {"logistic": said["by_logistic"], "fide": said["by_fide"]}
    parts = []
    if difference is not None:
        colon = " : " if lang == "fr" else ": "
        names["logistic"] += f"{colon}{score(logistic(difference), lang, 3)}"
        names["fide"] += f"{colon}{number(fide.expected_score(difference), lang, 2)}"
        shown = difference_text(difference, lang)
        at = f"D = {shown}" if abs(difference) <= WIDEST else said["beyond"].format(difference=shown)
        parts.append(text_at(frame.left + 12, frame.top + 68, at, "start"))
    for row, (name, label) in enumerate(names.items()):
        y = frame.top + 20 + 22 * row
        x = frame.left + 12
        parts.append(f'  <line class="{name}" x1="{x}" y1="{y}" x2="{x + 26}" y2="{y}" stroke-width="3"/>')
        parts.append(text_at(x + 34, y + 4, label, "start"))
    return parts


def text_at(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'  <text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
