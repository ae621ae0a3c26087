"""Which glyphs of which bundled font draw a text in any script.

A text is cut into clusters (a letter with its marks); a word is drawn in the first font that has all of it,
else cluster by cluster; HarfBuzz joins Arabic letters and builds the syllables of the scripts of India and
South East Asia, ligatures and emoji sequences. Right-to-left runs stand in their order (`bidi`).

What no font has, and what would be invisible or turn the text round (control and format characters, lone
surrogates, private use, fillers), is drawn as its code point: [U+202E]. Nothing is interpreted or dropped.

Not reached: Han characters have one form, the Chinese one, also in Japanese names; beyond U+FFFF only the
scripts and symbols of fonts/README.md are there; vertical scripts (Mongolian) run from left to right.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

import uharfbuzz  # type: ignore[import-untyped]

from petard_worker.sheet.bidi import embedding_levels, visual_order

REGULAR = "DejaVuSans"
BOLD = "DejaVuSans-Bold"
CJK = "DroidSansFallback"
EMOJI = "NotoEmoji-Regular"
JOINERS = "\u200c\u200d"
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
"""Letters and marks by their category that draw nothing at all."""
NEUTRAL = "\ufffc"
"""Stands for a code point in brackets when directions are resolved: it has none."""


class Glyph(NamedTuple):
    """A glyph, its advance and offset in thousandths of the font size, and the text that it stands for.

    Where several glyphs draw one cluster the first has its text, the others have "".
    """

    gid: int
    advance: float
    dx: float
    dy: float
    text: str


class GlyphRun(NamedTuple):
    """Glyphs of one font, from left to right."""

    font: str
    glyphs: tuple[Glyph, ...]


@dataclass(frozen=True)
class Line:
    """A line of text, ready to be drawn: its characters as shown, in reading order, and its glyphs."""

    shown: str
    runs: tuple[GlyphRun, ...]
    advance: float = field(init=False)
    """The width, in thousandths of the font size."""

    def __post_init__(self) -> None:
        advances = (glyph.advance for run in self.runs for glyph in run.glyphs)
        object.__setattr__(self, "advance", sum(advances))


class Cluster(NamedTuple):
    """Characters that belong together and the font that has them; escaped: a code point in brackets."""

    text: str
    font: str
    script: str
    escaped: bool = False


def font_bytes(name: str) -> bytes:
    """Return the file of a bundled font."""
    return (files("petard_worker.sheet") / "fonts" / f"{name}.ttf").read_bytes()


@cache
def fallbacks() -> tuple[str, ...]:
    """Return the other bundled fonts in the order in which they are asked."""
    folder = files("petard_worker.sheet") / "fonts"
    names = sorted(
        entry.name.removesuffix(".ttf") for entry in folder.iterdir() if entry.name.endswith(".ttf")
    )
    # Symbols come last: their fonts have letters and digits too.
    late = [CJK, EMOJI, *(name for name in names if name.startswith(("NotoSansSymbols", "NotoSansMath")))]
    return (*(name for name in names if name not in (REGULAR, BOLD, *late)), *late)


@cache
def shaper(font: str) -> uharfbuzz.Font:
    return uharfbuzz.Font(uharfbuzz.Face(uharfbuzz.Blob(font_bytes(font))))


@lru_cache(100_000)
def has_character(font: str, character: str) -> bool:
    return bool(shaper(font).get_nominal_glyph(ord(character)))


def has(font: str, text: str) -> bool:
    return all(has_character(font, c) or ignorable(c) for c in text)


def ignorable(character: str) -> bool:
    """Return whether a font may lack the character: HarfBuzz draws nothing for it, inside a cluster."""
    return character in JOINERS or 0xFE00 <= ord(character) <= 0xFE0F


def drawable(cluster: str) -> bool:
    """Return whether the cluster may be drawn as it is, if a font has it."""
    lonely = len(cluster) == 1
    return not any(
        character in FILLERS
        or (ignorable(character) and lonely)
        or (
            unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
            and not ignorable(character)
        )
        for character in cluster
    )


def clusters_of(text: str) -> Iterator[str]:
    """Split the text into characters with the marks, joiners and joined emoji that belong to them."""
    cluster = ""
    for character in text:
        if cluster and belongs(cluster, character):
            cluster += character
            continue
        if cluster:
            yield cluster
        cluster = character
    if cluster:
        yield cluster


def belongs(cluster: str, character: str) -> bool:
    last = cluster[-1]
    if unicodedata.category(cluster[0]) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return False
    if unicodedata.category(character).startswith("M") or ignorable(character):
        return True
    if is_emoji(character) and (last == "\u200d" or 0x1F3FB <= ord(character) <= 0x1F3FF):
        return is_emoji(cluster[0])
    flags = is_flag_letter(character) and len(cluster) == 1 and is_flag_letter(last)
    # A virama joins the letter after it: both need one font.
    return flags or (unicodedata.combining(last) == 9 and unicodedata.category(character) == "Lo")


def is_emoji(character: str) -> bool:
    return unicodedata.category(character) in ("So", "Sk")


def is_flag_letter(character: str) -> bool:
    return 0x1F1E6 <= ord(character) <= 0x1F1FF


def fonted(text: str, first: str) -> list[Cluster]:
    """Return the clusters of a text with their fonts; first: the font that is asked before all others."""
    fonts = (first, *((REGULAR,) if first != REGULAR else ()), *fallbacks())
    result: list[Cluster] = []
    words = groupby(clusters_of(unicodedata.normalize("NFC", text)), lambda cluster: cluster == " ")
    for space, group in words:
        word = list(group)
        legible = [cluster for cluster in word if drawable(cluster)]
        whole = next((font for font in fonts if all(has(font, cluster) for cluster in legible)), None)
        # The spaces of the emoji font are as wide as its pictures.
        if space and result and result[-1].font != EMOJI and has(result[-1].font, " "):
            whole = result[-1].font
        for cluster in word:
            result += placed(cluster, (whole,) if whole else fonts, first)
    return result


def placed(cluster: str, fonts: tuple[str, ...], first: str) -> list[Cluster]:
    """Return the cluster with its font, or its characters one by one where no font has all of them."""
    if drawable(cluster):
        font = next((font for font in fonts if has(font, cluster)), None)
        if font is not None:
            return [Cluster(cluster, font, script_of(cluster))]
    if len(cluster) > 1:
        return [part for character in cluster for part in placed(character, fonts, first)]
    return [Cluster(f"[U+{ord(cluster):04X}]", first, "", escaped=True)]


def script_of(cluster: str) -> str:
    """Return the script of a letter as its name has it, "" for what any script may use."""
    if not unicodedata.category(cluster[0]).startswith("L"):
        return ""
    return unicodedata.name(cluster[0], "").partition(" ")[0]


def line_of(text: str, first: str = REGULAR) -> Line:
    """Return the text as one line."""
    return line_of_clusters(fonted(text, first))


def line_of_clusters(clusters: list[Cluster]) -> Line:
    logical = [NEUTRAL if cluster.escaped else cluster.text for cluster in clusters]
    by_character = embedding_levels("".join(logical))
    levels = []
    start = 0
    for text in logical:
        levels.append(by_character[start])
        start += len(text)
    runs: list[GlyphRun] = []
    for run in visual_order(levels):
        shaped = [shape(part, run.level) for part in alike(clusters[run.start : run.end])]
        runs += reversed(shaped) if run.level % 2 else shaped
    return Line("".join(cluster.text for cluster in clusters), tuple(runs))


def alike(clusters: list[Cluster]) -> Iterator[list[Cluster]]:
    """Split into parts of one font and one script, in reading order."""
    part: list[Cluster] = []
    script = ""
    for cluster in clusters:
        same_script = not (script and cluster.script) or script == cluster.script
        if part and not (same_script and part[0].font == cluster.font and part[0].escaped == cluster.escaped):
            yield part
            part, script = [], ""
        part.append(cluster)
        script = script or cluster.script
    if part:
        yield part


def shape(clusters: list[Cluster], level: int) -> GlyphRun:
    font = shaper(clusters[0].font)
    text = "".join(cluster.text for cluster in clusters)
    buffer = uharfbuzz.Buffer()
    buffer.add_codepoints([ord(character) for character in text])
    buffer.direction = "rtl" if level % 2 and not clusters[0].escaped else "ltr"
    buffer.guess_segment_properties()
    # Else HarfBuzz takes the language of the process, and the same name looks different elsewhere.
    buffer.language = "und"
    uharfbuzz.shape(font, buffer)
    scale = 1000 / font.face.upem
    starts = sorted({info.cluster for info in buffer.glyph_infos})
    texts = {start: text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)}
    glyphs = tuple(
        Glyph(
            info.codepoint,
            position.x_advance * scale,
            position.x_offset * scale,
            position.y_offset * scale,
            texts.pop(info.cluster, ""),
        )
        for info, position in zip(buffer.glyph_infos, buffer.glyph_positions, strict=True)
    )
    return GlyphRun(clusters[0].font, glyphs)


def wrapped(text: str, first: str, width: float) -> list[Line]:
    """Return the text in lines, broken at spaces if possible.

    width: of the widest line, in thousandths of the font size.
    """
    rest = fonted(text, first)
    lines = []
    while rest:
        fitting = longest_fit(rest, width)
        if fitting < len(rest):
            spaces = [n for n in range(1, fitting + 1) if rest[n].text == " "]
            fitting = spaces[-1] if spaces else fitting
        lines.append(line_of_clusters(rest[:fitting]))
        rest = rest[fitting:]
        while rest and rest[0].text == " ":
            rest = rest[1:]
    return lines


def longest_fit(clusters: list[Cluster], width: float) -> int:
    """Return how many of the clusters fit into a line, at least one."""
    low, high = 1, len(clusters)
    while low < high:
        middle = (low + high + 1) // 2
        if line_of_clusters(clusters[:middle]).advance <= width:
            low = middle
        else:
            high = middle - 1
    return low
