from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from petard_schema import GameAbandoned, GameFinished, parse_event
from petard_worker.import_games import BadRow, read_pgn

LICHESS = """[Event "Rated Blitz game"]
[Site "https://lichess.org/j1dkb5dw"]
[Date "2013.01.01"]
[White "BFG9k"]
[Black "mamalak"]
[Result "1-0"]
[UTCDate "2012.12.31"]
[UTCTime "23:01:03"]
[WhiteElo "1639"]
[Termination "Normal"]

1. e4 { [%eval 0.17] [%clk 0:05:00] } 1... e5 2. d4 (2. Nf3 {known} Nc6) 2... exd4 $6 1-0
"""

Row = GameFinished | GameAbandoned | BadRow


def read(text: str, pool: str = "chess", source: str = "/test") -> list[Row]:
    return list(read_pgn(text.splitlines(keepends=True), pool, source))


def one(text: str) -> GameFinished | GameAbandoned:
    (row,) = read(text)
    assert not isinstance(row, BadRow)
    return row


def bad_row(text: str) -> BadRow:
    (row,) = read(text)
    assert isinstance(row, BadRow)
    return row


def pgn(moves: str = "1. e4 *", **tags: str) -> str:
    """Write a game, its tags changed; an empty tag is left out."""
    values = {"Event": "Open", "White": "ann", "Black": "bob", "Result": "1-0", "Date": "2026.01.02"} | tags
    return "".join(f'[{tag} "{value}"]\n' for tag, value in values.items() if value) + f"\n{moves}\n\n"


def players(rows: list[Row]) -> list[str]:
    return [row.data.sides[0].players[0] for row in rows if not isinstance(row, BadRow)]


def test_lichess_game_becomes_an_event_that_the_parser_accepts() -> None:
    event = one(LICHESS)

    assert parse_event(event.to_json()) == event
    assert isinstance(event, GameFinished)
    assert event.time == datetime(2012, 12, 31, 23, 1, 3, tzinfo=UTC)
    assert event.data.game == "https://lichess.org/j1dkb5dw"
    assert [(side.players, side.rank) for side in event.data.sides] == [(("BFG9k",), 1), (("mamalak",), 2)]


@pytest.mark.parametrize(("result", "ranks"), [("1-0", [1, 2]), ("0-1", [2, 1]), ("1/2-1/2", [1, 1])])
def test_result_ranks_white_and_black(result: str, ranks: list[int]) -> None:
    event = one(pgn(Result=result))

    assert [side.rank for side in event.data.sides] == ranks


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ({"Result": "*"}, "not finished: Result is '*'"),
        ({"Result": "2-0"}, "no result: Result is '2-0'"),
        ({"Result": ""}, "no result: there is no tag Result"),
        ({"White": ""}, "no player: there is no tag White"),
        ({"Black": "?"}, "no player: Black is '?'"),
        ({"Date": "????.??.??"}, "no day: Date is '????.??.??'"),
        ({"Date": "2026.??.??"}, "no day: Date is '2026.??.??'"),
        ({"Date": ""}, "no day: there is no tag Date"),
        ({"Date": "2026.02.30"}, "no time: Date is '2026.02.30', there is no tag Time: day is out of range"),
        ({"Time": "noon"}, "no time: Time is 'noon'"),
        ({"Black": "ann"}, "self_match: 'ann' plays against themselves"),
        ({"White": "a" * 65}, "bad_field:data.sides.0.players.0: "),
        ({"White": "al\u202eice"}, "bad_field:data.sides.0.players.0: holds U+202E"),
        ({"White": "\udcff"}, "bad_field:data.sides.0.players.0: "),
        ({"GameId": "g" * 65}, "bad_field:data.game: "),
    ],
)
def test_game_that_cannot_be_rated_is_a_bad_row_that_says_why(tags: dict[str, str], reason: str) -> None:
    row = bad_row(pgn(**tags))

    assert row.line == 1
    assert row.reason.startswith(reason)


def test_bad_rows_are_told_by_the_line_of_their_first_tag_and_the_rest_is_kept() -> None:
    rows = read(pgn(White="cid") + pgn(Result="*") + pgn(White="dan"))

    assert rows[1] == BadRow(9, "not finished: Result is '*'")
    assert players(rows) == ["cid", "dan"]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"Date": "2026.01.02"}, datetime(2026, 1, 2, tzinfo=UTC)),
        ({"Date": "2026-1-2"}, datetime(2026, 1, 2, tzinfo=UTC)),
        ({"Time": "13:14:15"}, datetime(2026, 1, 2, 13, 14, 15, tzinfo=UTC)),
        ({"Time": "13:14"}, datetime(2026, 1, 2, 13, 14, tzinfo=UTC)),
        ({"Time": "??:??:??"}, datetime(2026, 1, 2, tzinfo=UTC)),
        ({"Time": "13:14:15", "UTCDate": "2026.01.01"}, datetime(2026, 1, 1, tzinfo=UTC)),
        ({"UTCDate": "????.??.??", "UTCTime": "01:02:03"}, datetime(2026, 1, 2, tzinfo=UTC)),
        (
            {"Time": "13:14:15", "UTCDate": "2026.01.01", "UTCTime": "23:14:15"},
            datetime(2026, 1, 1, 23, 14, 15, tzinfo=UTC),
        ),
    ],
)
def test_utc_tags_go_before_local_ones_and_a_day_is_enough(tags: dict[str, str], expected: datetime) -> None:
    assert one(pgn(**tags)).time == expected


@pytest.mark.parametrize(("result", "leaver"), [("1-0", "bob"), ("0-1", "ann")])
@pytest.mark.parametrize("termination", ["Abandoned", "abandoned", "ann won - game abandoned"])
def test_abandoned_game_names_the_one_who_did_not_win(result: str, leaver: str, termination: str) -> None:
    event = one(pgn(Result=result, Termination=termination))

    assert isinstance(event, GameAbandoned)
    assert event.data.abandoned_by == (leaver,)
    assert parse_event(event.to_json()) == event


def test_abandoned_draw_is_finished_because_nobody_knows_who_left() -> None:
    assert isinstance(one(pgn(Result="1/2-1/2", Termination="Abandoned")), GameFinished)


def test_abandoned_game_without_result_is_a_bad_row() -> None:
    assert bad_row(pgn(Result="*", Termination="Abandoned")).reason == "not finished: Result is '*'"


@pytest.mark.parametrize("termination", ["Normal", "Time forfeit", "Rules infraction", "Unterminated"])
def test_other_endings_are_finished_games(termination: str) -> None:
    assert isinstance(one(pgn(Termination=termination)), GameFinished)


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        ({"Site": "https://lichess.org/j1dkb5dw", "GameId": "j1dkb5dw"}, "https://lichess.org/j1dkb5dw"),
        (
            {"Site": "Chess.com", "Link": "https://www.chess.com/game/live/123"},
            "https://www.chess.com/game/live/123",
        ),
        ({"Site": "London ENG", "GameId": "g-17"}, "g-17"),
    ],
)
def test_game_is_named_by_its_own_address_or_id(tags: dict[str, str], name: str) -> None:
    assert one(pgn(**tags)).data.game == name


@pytest.mark.parametrize(
    "site", ["London ENG", "https://example.org/open2026", "https://lichess.org/broadcast", "?"]
)
def test_site_shared_by_many_games_names_none_of_them(site: str) -> None:
    rows = read(pgn(Site=site, Round="1") + pgn(Site=site, Round="2") + pgn(Site=site, Round="2"))

    names = {row.data.game for row in rows if not isinstance(row, BadRow)}
    assert len(names) == 3
    assert site not in names


def test_importing_twice_gives_the_same_events() -> None:
    text = LICHESS + pgn() + pgn() + pgn(Termination="Abandoned")

    assert read(text) == read(text)
    assert len({row.id for row in read(text) if not isinstance(row, BadRow)}) == 4


def test_ids_do_not_depend_on_lines_moves_or_other_tags() -> None:
    before = one(pgn())

    after = read("\n\n" + pgn(White="new") + pgn("1. d4 { why } 1-0", WhiteElo="2000"))

    assert after[1] == before


def test_corrected_result_is_the_same_game_under_another_id() -> None:
    before, after = one(pgn()), one(pgn(Result="0-1"))

    assert before.data.game == after.data.game
    assert before.id != after.id


def test_other_sources_and_pools_have_other_ids() -> None:
    rows = [*read(pgn(), "chess", "/a"), *read(pgn(), "chess", "/b"), *read(pgn(), "go", "/a")]

    assert len({row.id for row in rows if not isinstance(row, BadRow)}) == 3


@pytest.mark.parametrize(
    "moves",
    [
        '1. e4 {[White "eve"]} e5 1-0',
        '1. e4 { a comment\n[White "eve"]\n\n[Black "fay"]\n} e5 1-0',
        "1. e4 ; the rest { is a comment\n1... e5 1-0",
        "1. e4 {; not a line comment} e5 {and} (1... c5 {[%clk 0:01]}) 1-0",
        "% {escaped for a program\n1. e4 1-0",
        '1. e4\n%[White "eve"]\n1... e5 1-0',
        "{ only a comment }",
        "",
        "1. e4 e5 [broken] 1-0",
        "1. e4 } 1-0",
        "1. e4 { nested { once } e5 1-0",
    ],
)
def test_moves_and_comments_never_become_games(moves: str) -> None:
    rows = read(pgn(moves, White="cid") + pgn(White="dan"))

    assert players(rows) == ["cid", "dan"]
    assert len(rows) == 2


def test_game_inside_an_open_comment_is_told_and_not_read() -> None:
    rows = read(
        pgn("1. e4 { never closed", White="cid")
        + pgn(White="lost")
        + pgn("{ closes } *", White="gone")
        + pgn()
    )

    assert players(rows) == ["cid", "ann"]
    assert [row for row in rows if isinstance(row, BadRow)] == [
        BadRow(9, "not read: it is inside the comment that line 7 opens"),
        BadRow(17, "not read: it is inside the comment that line 7 opens"),
    ]


def test_escapes_in_tags_are_resolved() -> None:
    event = one(pgn(White=r"Ann \"The Rook\" O\\Neil"))

    assert event.data.sides[0].players == ('Ann "The Rook" O\\Neil',)


@pytest.mark.parametrize("name", ['Ann "The Rook" Neil', "[ann]", 'a"]b', "{ann}", "ann;", "Zoë", "%ann"])
def test_careless_names_are_read_as_they_stand(name: str) -> None:
    assert one(pgn(White=name)).data.sides[0].players == (name,)


def test_many_tags_may_share_a_line() -> None:
    text = '[Event "a"] [White "ann"][Black "bob"] {why} \n [Result "1-0"]\t[ Date  "2026.01.02" ] ; so\n*\n'

    assert [side.players for side in one(text).data.sides] == [("ann",), ("bob",)]


def test_files_without_moves_are_read() -> None:
    games = [pgn("", White=name) for name in ("cid", "dan", "eve")]

    assert players(read("".join(games))) == ["cid", "dan", "eve"]
    assert players(read("".join(games).replace("\n\n", "\n"))) == ["cid", "dan", "eve"]


def test_crlf_and_byte_order_mark_change_nothing() -> None:
    assert read("\ufeff" + LICHESS.replace("\n", "\r\n")) == read(LICHESS)


def test_lines_without_their_ends_are_read_alike() -> None:
    assert list(read_pgn((LICHESS + pgn()).split("\n"), "chess", "/test")) == read(LICHESS + pgn())


def test_broken_tag_costs_no_more_than_itself() -> None:
    text = pgn(White="cid").replace("[Event", '[Annotator "no end\n[Event')

    assert players(read(text)) == ["cid"]
    assert bad_row(text.replace('[White "cid"]', "[White cid]")).reason == "no player: there is no tag White"


def test_tag_with_two_values_is_a_bad_row() -> None:
    text = pgn().replace('[Result "1-0"]', '[Result "1-0"]\n[Result "0-1"]')

    assert bad_row(text) == BadRow(1, "the tag Result stands twice with different values")
    assert isinstance(one(text.replace("0-1", "1-0")), GameFinished)


@pytest.mark.parametrize(
    "text", ["white,black,result\nann,bob,1-0\n", '[{"white": 1}]\n', "\n1. e4 e5 1-0\n"]
)
def test_file_that_is_no_pgn_says_so_once(text: str) -> None:
    assert "no tags stand before it" in bad_row(text).reason


@pytest.mark.parametrize("text", ["", "\n\n", "; nothing\n{ at all }\n"])
def test_empty_file_has_no_games(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(("pool", "source"), [("Not A Pool", "/test"), ("chess", ""), ("chess", "s" * 257)])
def test_pool_or_source_that_no_event_can_carry_is_refused_at_once(pool: str, source: str) -> None:
    with pytest.raises(ValueError, match=r"a pool is|source has"):
        read_pgn([], pool, source)


def test_games_are_read_as_they_are_asked_for() -> None:
    taken = []

    def endless() -> Iterator[str]:
        while True:
            taken.append(1)
            yield from pgn(White=f"player-{len(taken)}").splitlines()

    rows = read_pgn(endless(), "chess", "/test")

    assert players([next(rows), next(rows)]) == ["player-1", "player-2"]
    assert len(taken) <= 3


def test_hostile_lines_take_no_time() -> None:
    quotes = '[White "' + '\\" ' * 100_000 + "\n"
    braces = "{}" * 100_000 + "\n"
    brackets = "[" * 100_000 + '"' * 100_000 + "\n"

    rows = read(quotes + brackets + pgn(White="cid") + braces + brackets + pgn(White="dan"))

    assert players(rows)[-1] == "dan"
