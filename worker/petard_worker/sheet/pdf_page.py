"""One page of PDF: text in any script, lines and rectangles, the same bytes wherever it is made.

Nothing is compressed (what zlib gives depends on its version), nothing is dated or random, no name of a file
is written. What still decides the bytes are the versions of reportlab, HarfBuzz and Python's Unicode tables.
The text can be selected and searched: every glyph tells what it stands for. Not reached: some readers turn
the letters of an Arabic ligature (lam-alef) round when they copy it.
"""

import io
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby, pairwise
from typing import Any

import uharfbuzz  # type: ignore[import-untyped]
from reportlab.lib.pagesizes import A4  # type: ignore[import-untyped]
from reportlab.pdfbase.ttfonts import TTFont  # type: ignore[import-untyped]
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]

from petard_worker.sheet.glyphs import REGULAR, Glyph, Line, font_bytes, line_of, shaper

WIDTH, HEIGHT = A4
FIRST_CODE = 0xF0000
"""Codes for glyphs, in a plane of private use: no bundled font has a character there."""


class GlyphFont(TTFont):  # type: ignore[misc]
    """A font of one document, drawn glyph by glyph.

    reportlab draws characters and makes a subset of a font for those it has drawn. A shaped glyph is no
    character, so every glyph, with the text that it stands for, gets a code of its own.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, io.BytesIO(font_bytes(name)), asciiReadable=False, shapable=False)
        self.codes: dict[tuple[int, str], int] = {}
        self.texts: dict[int, str] = {}
        self.shaper: uharfbuzz.Font = shaper(name)

    def code_of(self, glyph: Glyph) -> int:
        key = (glyph.gid, glyph.text)
        if key not in self.codes:
            code = FIRST_CODE + len(self.codes)
            self.codes[key] = code
            self.texts[code] = glyph.text
            self.face.charToGlyph[code] = glyph.gid
            self.face.charWidths[code] = self.width_of(glyph.gid)
        return self.codes[key]

    def width_of(self, gid: int) -> int:
        """Return the width that the PDF states for the glyph, in thousandths of the font size."""
        thousandths = float(self.shaper.get_glyph_h_advance(gid) * 1000 / self.shaper.face.upem)
        return round(thousandths)

    def addObjects(self, doc: Any) -> None:  # noqa: N802
        subsets = self.state[doc].subsets
        first = self.getSubsetInternalName(0, doc)[1:].rpartition("+")[0]
        super().addObjects(doc)
        fonts = doc.idToObject["BasicFonts"].dict
        for n, subset in enumerate(subsets):
            reference = fonts[f"{first}+{n}"].ToUnicode
            doc.idToObject[reference.name].content = self.to_unicode(subset)

    def to_unicode(self, subset: Sequence[int]) -> str:
        """Return the map from codes to text; reportlab's own knows no text beyond U+FFFF and no ligatures."""
        entries = [
            f"<{n:02X}> <{self.texts[code].encode('utf-16-be').hex().upper()}>"
            for n, code in enumerate(subset)
            if self.texts.get(code)
        ]
        blocks = [entries[start : start + 100] for start in range(0, len(entries), 100)]
        return "\n".join(
            [
                "/CIDInit /ProcSet findresource begin 12 dict begin begincmap",
                "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def",
                "/CMapName /Adobe-Identity-UCS def /CMapType 2 def",
                "1 begincodespacerange <00> <FF> endcodespacerange",
                *(f"{len(block)} beginbfchar\n" + "\n".join(block) + "\nendbfchar" for block in blocks),
                "endcmap CMapName currentdict /CMap defineresource pop end end",
            ]
        )


class PdfPage:
    """An A4 page to draw on; points from the lower left corner, colours as #rrggbb.

    day: the date of the document.
    """

    def __init__(self, title: str, day: date, lang: str) -> None:
        self.file = io.BytesIO()
        self.canvas = Canvas(self.file, pagesize=A4, pageCompression=0, invariant=1, lang=lang)
        self.canvas.setTitle(title)
        self.canvas.setAuthor("Petard")
        self.canvas.setSubject("")
        self.canvas.setCreator("Petard")
        # reportlab would say the year 2000.
        self.canvas.setDateFormatter(lambda *_: f"D:{day.isoformat().replace('-', '')}")
        self.fonts: dict[str, GlyphFont] = {}

    def text(self, x: float, y: float, text: str, size: float, *, font: str = REGULAR, colour: str) -> float:
        """Draw the text from x on and return where it ends."""
        return self.line_of_text(x, y, line_of(text, font), size, colour)

    def line_of_text(self, x: float, y: float, line: Line, size: float, colour: str) -> float:
        """Draw shaped text from x on and return where it ends."""
        self.canvas.setFillColor(colour)
        for run in line.runs:
            font = self.fonts.get(run.font) or self.fonts.setdefault(run.font, GlyphFont(run.font))
            for several, glyphs in by_cluster(run.glyphs):
                # A glyph has one text; only where some of them make one character readers need to be told.
                text = glyphs[0].text.encode("utf-16-be").hex().upper()
                self.write(f"/Span <</ActualText <FEFF{text}>>> BDC" if several else "")
                x = self.glyphs(x, y, glyphs, font, size)
                self.write("EMC" if several else "")
        return x

    def width(self, text: str, size: float) -> float:
        """Return how wide the text would be, in points."""
        return line_of(text).advance * size / 1000

    def glyphs(self, x: float, y: float, glyphs: Sequence[Glyph], font: GlyphFont, size: float) -> float:
        for start, part in straight(glyphs, font):
            codes = "".join(chr(font.code_of(glyph)) for glyph in part)
            left = x + (start + part[0].dx) * size / 1000
            self.write(f"BT 1 0 0 1 {left:.3f} {y + part[0].dy * size / 1000:.3f} Tm")
            for subset, text in font.splitString(codes, self.canvas._doc):
                name = font.getSubsetInternalName(subset, self.canvas._doc)
                self.write(f"{name} {size:.2f} Tf <{text.hex()}> Tj")
            self.write("ET")
        return x + sum(glyph.advance for glyph in glyphs) * size / 1000

    def lines(self, points: Sequence[tuple[float, float]], colour: str, width: float) -> None:
        """Draw lines from point to point."""
        path = self.canvas.beginPath()
        path.moveTo(*points[0])
        for point in points[1:]:
            path.lineTo(*point)
        self.canvas.setStrokeColor(colour)
        self.canvas.setLineWidth(width)
        self.canvas.setLineJoin(1)
        self.canvas.drawPath(path, stroke=1, fill=0)

    def dashes(self, points: Sequence[tuple[float, float]], colour: str, width: float) -> None:
        """Draw dashed lines from point to point."""
        self.canvas.setDash(3, 2)
        self.lines(points, colour, width)
        self.canvas.setDash()

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """Fill a rectangle; x, y: its lower left corner."""
        self.canvas.setFillColor(colour)
        self.canvas.rect(x, y, width, height, stroke=0, fill=1)

    def dot(self, x: float, y: float, radius: float, colour: str) -> None:
        self.canvas.setFillColor(colour)
        self.canvas.circle(x, y, radius, stroke=0, fill=1)

    def clip(self, x: float, y: float, width: float, height: float) -> None:
        """Let nothing be drawn outside the rectangle until `unclip`."""
        self.canvas.saveState()
        path = self.canvas.beginPath()
        path.rect(x, y, width, height)
        self.canvas.clipPath(path, stroke=0, fill=0)

    def unclip(self) -> None:
        self.canvas.restoreState()

    def write(self, operators: str) -> None:
        if operators:
            self.canvas._code.append(operators)

    def finished(self) -> bytes:
        """Return the document."""
        self.canvas.save()
        return self.file.getvalue()


def by_cluster(glyphs: Sequence[Glyph]) -> Iterator[tuple[bool, Sequence[Glyph]]]:
    """Split into clusters of several glyphs and the runs of single glyphs between them."""
    clusters: list[list[Glyph]] = []
    for glyph in glyphs:
        if glyph.text or not clusters:
            clusters.append([])
        clusters[-1].append(glyph)
    for several, group in groupby(clusters, lambda cluster: len(cluster) > 1):
        if several:
            yield from ((True, cluster) for cluster in group)
        else:
            yield False, [glyph for cluster in group for glyph in cluster]


def straight(glyphs: Sequence[Glyph], font: GlyphFont) -> Iterator[tuple[float, Sequence[Glyph]]]:
    """Split into parts that stand as their widths alone put them, each with where it starts."""
    part: list[Glyph] = []
    start = at = 0.0
    for before, glyph in pairwise([None, *glyphs]):
        assert glyph is not None
        offset = glyph.dx or glyph.dy or (before is not None and (before.dx or before.dy))
        kerned = before is not None and abs(before.advance - font.width_of(before.gid)) > 1
        if part and (offset or kerned):
            yield start, part
            part, start = [], at
        part.append(glyph)
        at += glyph.advance
    if part:
        yield start, part
