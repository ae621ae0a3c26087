"""Names in many scripts find a font and their glyphs, and nothing is lost or interpreted."""

import unicodedata

import pytest

from petard_worker.sheet.glyphs import BOLD, REGULAR, Line, line_of, shaper, wrapped

NAMES = {
    "Latin": "Đặng Þór Ñandú Łukasz",
    "Greek": "Ελένη Παπαδοπούλου",
    "Cyrillic": "Наталія Їжак",
    "Armenian": "Լևոն Արոնյան",
    "Georgian": "ნონა გაფრინდაშვილი",
    "Hebrew": "בוריס גלפנד",
    "Arabic": "بسام أمين محمد",
    "Urdu": "سلطان خان ٹھیک",
    "Syriac": "ܝܘܚܢܢ",
    "Devanagari": "विश्वनाथन् आनन्द",
    "Bengali": "জিয়াউর রহমান",
    "Gurmukhi": "ਗੁਰਮੁਖੀ",
    "Gujarati": "ગુજરાતી",
    "Odia": "ଓଡ଼ିଆ",
    "Tamil": "பிரக்ஞானந்தா",
    "Telugu": "హారిక ద్రోణవల్లి",
    "Kannada": "ಕನ್ನಡ",
    "Malayalam": "നിഹാൽ സരിൻ",
    "Sinhala": "සිංහල",
    "Thai": "สมชาย ใจดี",
    "Lao": "ລາວ",
    "Khmer": "ខ្មែរ",
    "Burmese": "မြန်မာ",
    "Tibetan": "བོད་ཡིག",
    "Ethiopic": "አማርኛ",
    "Cherokee": "ᏣᎳᎩ",
    "Inuktitut": "ᐃᓄᒃᑎᑐᑦ",
    "Mongolian": "ᠮᠣᠩᠭᠣᠯ",
    "Tifinagh": "ⵜⵉⴼⵉⵏⴰⵖ",
    "N'Ko": "ߒߞߏ",
    "Adlam": "𞤀𞤣𞤤𞤢𞤥",
    "Chinese": "丁立人 侯逸凡 諸宸",
    "Japanese": "小島慎也 チェス さくら",
    "Korean": "김민준 뷁",
    "emoji": "👩‍🚀 😀 👍🏽 🇫🇷 ♟",
    "mathematical letters": "𝓐𝓵𝓲𝓬𝓮",
}


def glyph_ids(line: Line) -> list[int]:
    return [glyph.gid for run in line.runs for glyph in run.glyphs]


def drawn_text(line: Line) -> str:
    return "".join(glyph.text for run in line.runs for glyph in run.glyphs)


@pytest.mark.parametrize("script", NAMES)
def test_a_name_of_every_script_in_use_is_drawn_without_code_points(script: str) -> None:
    name = NAMES[script]

    line = line_of(name)

    assert line.shown == unicodedata.normalize("NFC", name)
    assert 0 not in glyph_ids(line), "0 is the box for a missing glyph"
    assert sorted(drawn_text(line)) == sorted(line.shown)


def test_arabic_letters_are_joined() -> None:
    alone = [glyph_ids(line_of(letter)) for letter in "محمد"]

    together = glyph_ids(line_of("محمد"))

    # From left to right, so the last letter comes first; none has the form that it has alone.
    assert len(together) == 4
    assert all([gid] != lonely for gid, lonely in zip(together, reversed(alone), strict=True))


def test_two_right_to_left_scripts_in_one_name_are_each_shaped_as_their_own() -> None:
    arabic = glyph_ids(line_of("سلام"))

    mixed = glyph_ids(line_of("שלום سلام"))

    assert mixed[: len(arabic)] == arabic


def test_a_vowel_sign_that_stands_before_its_consonant_is_drawn_there() -> None:
    consonant = glyph_ids(line_of("ग"))

    syllable = glyph_ids(line_of("गि"))

    assert len(syllable) == 2
    assert syllable[1:] == consonant


def test_right_to_left_text_is_drawn_from_the_right() -> None:
    letters = {letter: glyph_ids(line_of(letter))[0] for letter in "אבג"}

    line = glyph_ids(line_of("אבג"))

    assert line == [letters["ג"], letters["ב"], letters["א"]]


def test_a_joined_emoji_is_one_picture() -> None:
    line = line_of("👩\u200d🚀")

    assert len([glyph for run in line.runs for glyph in run.glyphs if glyph.advance]) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a[U+0000]b"),
        ("tab\there\n", "tab[U+0009]here[U+000A]"),
        ("\u202eevil", "[U+202E]evil"),
        ("\u2066x\u2069", "[U+2066]x[U+2069]"),
        ("\ud800", "[U+D800]"),
        ("\ue000", "[U+E000]"),
        ("\U00013000", "[U+13000]"),
        ("\U0010ffff", "[U+10FFFF]"),
        ("\u3164", "[U+3164]"),
        ("\u200b", "[U+200B]"),
        ("\u200d", "[U+200D]"),
        ("Li\U0002000b", "Li[U+2000B]"),
        ("<b>&amp;</b>", "<b>&amp;</b>"),
        ("%s {0} \\n", "%s {0} \\n"),
        ("", ""),
    ],
)
def test_what_cannot_be_drawn_is_shown_as_its_code_point_and_markup_as_it_is(text: str, shown: str) -> None:
    line = line_of(text)

    assert line.shown == shown
    assert sorted(drawn_text(line)) == sorted(shown)
    assert 0 not in glyph_ids(line)


def test_a_code_point_is_read_from_the_left_in_a_name_that_is_read_from_the_right() -> None:
    line = line_of("אב\u202eגד")

    texts = ["".join(glyph.text for glyph in run.glyphs) for run in line.runs]

    assert texts == ["דג", "[U+202E]", "בא"]


def test_bold_is_used_where_it_has_the_characters() -> None:
    line = line_of("Results 李", BOLD)

    fonts = [run.font for run in line.runs]

    assert fonts[0] == BOLD
    assert fonts[-1] not in (BOLD, REGULAR)


@pytest.mark.parametrize("text", ["word " * 40, "W" * 64, "\U00013000" * 64, "李" * 64, "سلام " * 30])
def test_wrapped_lines_fit_and_lose_nothing_but_spaces(text: str) -> None:
    lines = wrapped(text, REGULAR, 20_000)

    assert len(lines) > 1
    assert all(line.advance <= 20_000 for line in lines)
    everything = "".join(line.shown for line in lines).replace(" ", "")
    assert everything == line_of(text).shown.replace(" ", "")


def test_lines_break_at_spaces() -> None:
    lines = wrapped("Maria Magdalena Wilhelmina", REGULAR, 7_000)

    assert [line.shown.strip() for line in lines] == ["Maria", "Magdalena", "Wilhelmina"]


def test_widths_are_those_of_the_font() -> None:
    # DejaVu Sans: 2048 units to the em, a zero is 1303 wide.
    line = line_of("00")

    assert shaper(REGULAR).face.upem == 2048
    assert line.advance == pytest.approx(2 * 1303 / 2048 * 1000)
