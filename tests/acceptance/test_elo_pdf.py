"""`petard elo pdf`: a page about one game, in a file or on standard output, without any server."""

import io
import subprocess
import sys
from datetime import UTC, datetime

import pypdf
import pytest

from acceptance.conftest import Command

GAME = ("1200", "1800", "win", "--me", "Алиса", "--opponent", "Zoë")
DAY = ("--date", "2026-11-30")
NOBODY = "127.0.0.1:1"


@pytest.fixture
def pdf(run: Command):
    """Run `petard elo pdf` with no server in reach."""
    alone = run.where(
        PETARD_DATABASE_URL=f"postgresql://{NOBODY}/petard", PETARD_REDIS_URL=f"redis://{NOBODY}/0"
    )
    return lambda *arguments: alone("elo", "pdf", *map(str, arguments))


def words_of(document: bytes) -> str:
    """The text of the page, every run of spaces as one."""
    reader = pypdf.PdfReader(io.BytesIO(document), strict=True)
    assert len(reader.pages) == 1
    return " ".join(reader.pages[0].extract_text().split())


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        (
            "en",
            (
                "30 November 2026",
                "1238.77 1236.80",
                "+38.77 +36.80",
                "0.0307 (3.07 %) 0.08 (8.00 %)",
                "none (infinite) 2600",
                "K 40 as given",
            ),
        ),
        (
            "fr",
            (
                "30 novembre 2026",
                "1238,77 1236,80",
                "+38,77 +36,80",
                "0,0307 (3,07 %) 0,08 (8,00 %)",
                "2600",
                "K 40 indiqué",
            ),
        ),
    ],
)
def test_page_has_the_numbers_of_the_calculator_in_its_language(pdf, tmp_path, lang, words):
    file = tmp_path / "sheet.pdf"

    ended = pdf(file, *GAME, *DAY, "--k", "40", "--lang", lang)

    assert (ended.code, ended.stdout, ended.stderr) == (0, "", f"wrote {file}\n")
    page = words_of(file.read_bytes())
    assert [word for word in (*words, "Алиса", "Zoë") if word not in page] == []


def test_same_game_of_the_same_day_is_the_same_file(pdf, tmp_path):
    files = [tmp_path / name for name in ("a.pdf", "b.pdf")]

    ended = [pdf(file, *GAME, *DAY) for file in files]

    assert [one.code for one in ended] == [0, 0]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_what_is_known_of_the_player_decides_k_and_is_on_the_page(pdf, tmp_path):
    file = tmp_path / "sheet.pdf"

    pdf(file, "2250", "2300", "draw", *GAME[3:], *DAY, "--games", "50", "--age", "16", "--lang", "fr")

    page = words_of(file.read_bytes())
    assert "K 40 jusqu’à la fin de l’année des 18 ans, sous 2300 : FIDE 8.3.3" in page
    assert "Parties classées avant 50 Âge 16" in page


def test_page_without_names_names_nobody(pdf, tmp_path):
    file = tmp_path / "sheet.pdf"

    ended = pdf(file, *GAME[:3], *DAY)

    assert ended.code == 0
    page = words_of(file.read_bytes())
    assert "Player" not in page.replace("Chessplayers", "")
    assert "Rating R 1200" in page
    title = pypdf.PdfReader(file).metadata
    assert title is not None
    assert title.title == "Elo rating of one game, 2026-11-30"


def test_file_that_is_there_is_kept_unless_forced(pdf, tmp_path):
    file = tmp_path / "sheet.pdf"
    file.write_text("precious")

    kept = pdf(file, *GAME, *DAY)
    content = file.read_text()
    forced = pdf(file, *GAME, *DAY, "--force")

    assert (kept.code, kept.stderr) == (1, f"petard: {file} exists already: --force overwrites it\n")
    assert content == "precious"
    assert forced.code == 0
    assert file.read_bytes().startswith(b"%PDF-")


def test_dash_is_standard_output(petard, pdf, tmp_path):
    file = tmp_path / "sheet.pdf"
    pdf(file, *GAME, *DAY)

    piped = subprocess.run(
        petard.command("elo", "pdf", "-", *GAME, *DAY),
        env=petard.environment,
        cwd=tmp_path,
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert piped.stdout == file.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["sheet.pdf"]


def test_day_left_out_is_today(pdf, tmp_path):
    file = tmp_path / "sheet.pdf"
    before = datetime.now(UTC).date()

    pdf(file, *GAME)

    after = datetime.now(UTC).date()
    assert any(f"{day.day} {day:%B %Y}" in words_of(file.read_bytes()) for day in (before, after))


def test_negative_ratings_are_no_options(pdf, tmp_path):
    file = tmp_path / "sheet.pdf"

    ended = pdf(file, "-50", "-100", "loss", *GAME[3:], *DAY, "--k", "20")

    assert ended.code == 0
    assert "−61.43" in words_of(file.read_bytes())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*GAME, "--lang", "de"), "--lang 'de' is none of en, fr"),
        ((*GAME, "--date", "2026-02-30"), "--date '2026-02-30' is no date of the form YYYY-MM-DD"),
        ((*GAME, "--date", "20261130"), "--date '20261130' is no date"),
        ((*GAME, "--date", "2026-W48-1"), "--date '2026-W48-1' is no date"),
        ((*GAME, "--k", "0"), "K is 0"),
        ((*GAME, "--peak", "high"), "highest rating is 'high'"),
        (("1200", "1800", "won", *GAME[3:]), "win, draw or loss"),
        (("nan", "1800", "win", *GAME[3:]), "'nan'"),
        (("1200", "1800", "win", "--me", "x" * 501, "--opponent", "Zoë"), "player has 501 characters"),
        (GAME[:2], "win|draw|loss"),
    ],
)
def test_what_cannot_be_drawn_is_refused_and_nothing_written(pdf, tmp_path, arguments, words):
    file = tmp_path / "sheet.pdf"

    ended = pdf(file, *arguments)

    assert (ended.code, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert not file.exists()


def test_folder_that_is_not_there_is_named(pdf, tmp_path):
    file = tmp_path / "nowhere" / "sheet.pdf"

    ended = pdf(file, *GAME, *DAY)

    assert ended.code == 1
    assert str(file) in ended.stderr


@pytest.mark.parametrize("missing", ["reportlab", "uharfbuzz"])
def test_without_the_extra_the_command_says_how_to_install_it(tmp_path, missing):
    program = f"import sys; sys.modules[{missing!r}] = None; from petard_worker.cli import main; main()"
    file = tmp_path / "sheet.pdf"

    ended = subprocess.run(
        [sys.executable, "-c", program, "elo", "pdf", str(file), *GAME, *DAY],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "petard: petard elo pdf needs the extra: pip install 'petard[pdf]'\n"
    assert not file.exists()


def test_example_in_the_help_works(pdf, tmp_path):
    told = " ".join(pdf("--help").stdout.replace("│", " ").split())

    example = told.partition("Example: petard elo pdf sheet.pdf ")[2].partition(" ╭")[0]

    assert example.startswith("1200 1800 win --me Ann")
    assert pdf(tmp_path / "sheet.pdf", *example.split()).code == 0
