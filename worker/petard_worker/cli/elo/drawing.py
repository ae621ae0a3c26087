"""Small drawings in a terminal, a line of ratings and the S-curve; in ASCII where it knows nothing else."""

import sys
from collections.abc import Callable, Sequence

BLOCKS, PLAIN_BLOCKS = "▁▂▃▄▅▆▇█", "_.-=+*%#"
WIDEST_LINE = 60
EMPTY_BRAILLE = 0x2800
BRAILLE_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The dots of a braille letter, by line and column."""
CURVE_COLUMNS, CURVE_LINES = 64, 12
"""With the scale at its side the curve is 71 columns wide."""


def can_show(text: str) -> bool:
    """Return whether standard output knows these letters."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def sparkline(values: Sequence[float]) -> str:
    """Return the values as heights of letters; of many values some, evenly spread, with both ends."""
    if len(values) > WIDEST_LINE:
        last = len(values) - 1
        values = [values[round(step * last / (WIDEST_LINE - 1))] for step in range(WIDEST_LINE)]
    blocks = BLOCKS if can_show(BLOCKS) else PLAIN_BLOCKS
    low, high = min(values), max(values)
    if low == high:
        return blocks[3] * len(values)
    top = len(blocks) - 1
    return "".join(blocks[round((value - low) / (high - low) * top)] for value in values)


def curve(score: Callable[[float], float], widest: float) -> list[str]:
    """Return the lines of a drawing of the expected score for differences from -widest to widest."""
    braille = can_show(chr(EMPTY_BRAILLE))
    plot = braille_plot(score, widest) if braille else letter_plot(score, widest)
    middle = CURVE_LINES // 2
    sides = {0: "100 % ", middle: " 50 % ", CURVE_LINES - 1: "  0 % "}
    lines = [sides.get(number, " " * 6) + "|" + line for number, line in enumerate(plot)]
    ends = f"{-widest:+g}", "0", f"{widest:+g}"
    half = CURVE_COLUMNS // 2
    scale = ends[0] + "0".rjust(half - len(ends[0]) + 1) + ends[2].rjust(half - 1)
    return [*lines, " " * 6 + "+" + "-" * CURVE_COLUMNS, " " * 7 + scale]


def braille_plot(score: Callable[[float], float], widest: float) -> list[str]:
    """Return the curve in braille letters, two dots wide and four high."""
    cells = [[EMPTY_BRAILLE] * CURVE_COLUMNS for _ in range(CURVE_LINES)]
    for x, y in dots(score, widest, CURVE_COLUMNS * 2, CURVE_LINES * 4):
        cells[y // 4][x // 2] |= BRAILLE_DOTS[y % 4][x % 2]
    return ["".join(map(chr, line)) for line in cells]


def letter_plot(score: Callable[[float], float], widest: float) -> list[str]:
    """Return the curve in asterisks."""
    cells = [[" "] * CURVE_COLUMNS for _ in range(CURVE_LINES)]
    for x, y in dots(score, widest, CURVE_COLUMNS, CURVE_LINES):
        cells[y][x] = "*"
    return ["".join(line).rstrip() for line in cells]


def dots(score: Callable[[float], float], widest: float, columns: int, lines: int) -> list[tuple[int, int]]:
    """Return column and line, from the top left, of the dot in every column."""
    found = []
    for x in range(columns):
        difference = widest * (2 * x / (columns - 1) - 1)
        found.append((x, round((1 - score(difference)) * (lines - 1))))
    return found
