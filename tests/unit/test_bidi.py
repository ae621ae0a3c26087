"""The order of characters against Unicode Standard Annex 9; capitals stand for Hebrew, as there."""

import pytest

from petard_worker.sheet.bidi import embedding_levels, visual_order

HEBREW = dict(zip("ABCDEFGHIJKLMNOPQRSTUVW", map(chr, range(0x5D0, 0x5E7)), strict=True))


def displayed(logical: str) -> str:
    """The text from left to right, capitals taken for Hebrew letters."""
    text = "".join(HEBREW.get(c, c) for c in logical)
    runs = visual_order(embedding_levels(text))
    return "".join(logical[r.start : r.end][:: -1 if r.level % 2 else 1] for r in runs)


@pytest.mark.parametrize(
    ("logical", "visual"),
    [
        ("car", "car"),
        ("CAR", "RAC"),
        ("car means CAR.", "car means RAC."),  # L2, first example
        ("CAR MEANS car.", ".car SNAEM RAC"),
        ("AB 123 CD", "DC 123 BA"),  # I1, I2: numbers keep their order
        ("AB 1,234.50 CD", "DC 1,234.50 BA"),  # W4
        ("AB $12 CD", "DC $12 BA"),  # W5
        ("a B, C d", "a C ,B d"),  # N1
        ("a (B) c", "a (B) c"),  # N0: brackets go with the paragraph if it is inside
        ("smith (fab AR) HE", "smith (fab RA) EH"),  # N0, its example for a left-to-right paragraph
        ("AR bo(s) HE", "EH bo(s) RA"),
        ("", ""),
    ],
)
def test_a_line_is_displayed_as_the_annex_says(logical: str, visual: str) -> None:
    shown = displayed(logical)

    assert shown == visual


def test_a_european_number_after_an_arabic_letter_is_an_arabic_one() -> None:
    levels = embedding_levels("\u0639 1-2")

    # W2 makes them AN, W4 does not join AN over a hyphen: each number stands alone, the first to the right.
    assert levels == [1, 1, 2, 1, 2]


def test_marks_stay_with_their_letter() -> None:
    levels = embedding_levels("a\u05d0\u05b8b")

    assert levels == [0, 1, 1, 0]


def test_spaces_at_the_end_belong_to_the_paragraph() -> None:
    levels = embedding_levels("ab \u05d0\u05d1  ")

    assert levels == [0, 0, 0, 1, 1, 0, 0]
