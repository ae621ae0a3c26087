"""Which texts need no closer look; that both looks see the same event is for parse_oracle.py to say."""

import json

import pytest

from petard_schema.usual_event import read_usual

SIDES = '[{"players":["alice"],"rank":1},{"players":["bob"],"rank":2}]'
TRACE = f"00-{'a' * 32}-{'b' * 16}-01"
USUAL = (
    '{"specversion":"1.0","id":"01JE","source":"/servers/eu-1","type":"petard.game.finished.v1",'
    f'"time":"2026-11-30T12:00:00Z","data":{{"pool":"chess-blitz","game":"g-1","sides":{SIDES}}}}}'
)
LEFT = USUAL.replace("finished", "abandoned").replace(SIDES, SIDES + ',"abandoned_by":["bob"]')


@pytest.mark.parametrize(
    "text",
    [
        USUAL,
        LEFT,
        json.dumps(json.loads(USUAL)),
        json.dumps(json.loads(USUAL), indent=2),
        USUAL.replace("alice", "さくら"),
        USUAL.replace('"data":', '"data"\t:'),
        USUAL.replace('"sides":', '"rated":true,"decided_by":"play","knockout":false,"sides":'),
        LEFT.replace('"sides":', '"rated":false,"fault":"player","sides":'),
        USUAL.replace('"data":', f'"traceparent":"{TRACE}","data":'),
        USUAL.replace('"pool":', '"started":"2026-11-30T11:00:00+01:00","importance":1.5,"pool":'),
        USUAL.replace('"rank":1', '"rank":1,"points":2.5'),
    ],
)
def test_the_usual_is_read_at_once(text: str) -> None:
    assert read_usual(text.encode()) is not None


@pytest.mark.parametrize(
    ("this", "other"),
    [
        ('"rank":1', '"rank":1,"rank":1'),
        ('"rank":1', '"rank":1,"unknown":2'),
        ('"rank":1', '"rank":1,"points":1e2'),
        ('"rank":1', '"rank":1,"points":0.30000000000000004'),
        ('"rank":1', '"rank":1,"weights":[0.1000000000000000055]'),
        ('"pool"', '"importance":1E0,"pool"'),
        ('"pool"', '"meta":{},"pool"'),
        ('"pool"', '"rated":true,"rated":true,"pool"'),
        ('"pool"', '"started":null,"pool"'),
        ('"pool"', f'"started":{"[" * 9_000}{"]" * 6_000},"pool"'),
        ('"2026-11-30T12:00:00Z"', f"{'[' * 7_500}{']' * 7_500}"),
        ("2026-11-30T12", "2026-11-30 12"),
        ("12:00:00Z", "12:00:00+0000"),
        ('"data":', '"traceparent":[],"data":'),
        ('"specversion":"1.0",', ""),
        ('"type":"petard.game.finished.v1",', ""),
        ('"rank":1', '"points":1e-400,"rank":1'),
        ("alice", "\\u0061lice"),
        ("alice", '"'),
        ("2026", "26"),
    ],
)
def test_a_remarkable_text_needs_a_closer_look(this: str, other: str) -> None:
    remarkable = USUAL.replace(this, other)

    assert remarkable != USUAL
    assert read_usual(remarkable.encode()) is None


@pytest.mark.parametrize("number", ['"points":1e-400', '"points":0e-99999', '"weights":[1e-400]'])
def test_numbers_are_looked_at_also_where_a_side_has_no_rank(number: str) -> None:
    remarkable = LEFT.replace('"rank":1', number)

    assert remarkable != LEFT
    assert read_usual(remarkable.encode()) is None
