"""A sheet shows what the calculator found: none of its numbers is another one."""

import datetime
import io

import pypdf
import pytest

from petard_worker.ratings.calculator import KChoice, change
from petard_worker.sheet.elo_sheet import Sheet, sheet_bytes
from petard_worker.sheet.rated_game import Heading, sheet_of

DAY = datetime.date(2026, 11, 30)


def heading(lang="en", player="Alice") -> Heading:
    return Heading(player, "Bob", DAY, lang)


def test_sheet_has_the_numbers_of_the_calculator_page():
    choice = KChoice(games=12, age=15)

    sheet = sheet_of(change(1200, 1800, 1.0, choice), choice, heading())

    # 1200 beats 1800 with K = 40: the logistic curve, and table 8.1.2 with the difference taken as 400.
    assert sheet == Sheet(
        player="Alice",
        opponent="Bob",
        rating=1200,
        opponent_rating=1800,
        score=1,
        k=40,
        k_reason="fewer than 30 games: FIDE 8.3.3",
        expected=pytest.approx(0.030653430031715508, abs=1e-15),
        expected_fide=0.08,
        difference_fide=-400,
        change=pytest.approx(38.77386279873138, abs=1e-12),
        change_fide=pytest.approx(36.8, abs=1e-12),
        new_rating=pytest.approx(1238.7738627987314, abs=1e-11),
        new_rating_fide=pytest.approx(1236.8, abs=1e-11),
        performance=None,
        performance_fide=2600,
        date=DAY,
        games=12,
        age=15,
        lang="en",
    )


@pytest.mark.parametrize(
    ("score", "said"),
    [(1.0, "Result win, S = 1"), (0.5, "Result draw, S = 0.5"), (0.0, "Result loss, S = 0")],
)
def test_result_is_the_players_own(score, said):
    choice = KChoice()
    sheet = sheet_of(change(1500, 1600, score, choice), choice, heading())

    text = pypdf.PdfReader(io.BytesIO(sheet_bytes(sheet)), strict=True).pages[0].extract_text()

    assert said in " ".join(text.split())


def test_french_page_has_no_english_on_it():
    choice = KChoice()
    sheet = sheet_of(change(1850, 1700, 0.5, choice), choice, heading("fr"))

    text = pypdf.PdfReader(io.BytesIO(sheet_bytes(sheet)), strict=True).pages[0].extract_text()

    page = " ".join(text.split())
    assert "20 30 parties ou plus, jamais classé 2400 : FIDE 8.3.3 ; nombre de parties non indiqué" in page
    for word in ("games", "rated", "given", "assumed", "Rating", "draw"):
        assert word not in page.replace("The Rating of Chessplayers", "").replace("Rating Regulations", "")


def test_same_game_gives_the_same_bytes_and_another_name_others():
    choice = KChoice()
    found = change(1850, 1700, 0.5, choice)

    once, again, other = (
        sheet_bytes(sheet_of(found, choice, heading("fr", name))) for name in ("Ann", "Ann", "Eve")
    )

    assert once == again != other


def test_name_that_is_no_name_is_refused_with_its_length():
    choice = KChoice()

    with pytest.raises(ValueError, match="player has 501 characters; the page has place for 500"):
        sheet_of(change(1500, 1500, 0.5, choice), choice, heading(player="x" * 501))
