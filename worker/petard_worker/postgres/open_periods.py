"""The open_period table: what players have done in the rating period that is open.

A row that was written before the player's newest change says nothing any more.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from petard_worker.fold import PlayerRecord
from petard_worker.periods import OpenPeriod, Period
from petard_worker.postgres.columns import int8s, texts
from petard_worker.postgres.connect import Connection
from petard_worker.ratings.system import PlayerState

Records = dict[str, PlayerRecord]


def ask_periods(connection: Connection, pool: str, players: Iterable[str]) -> Callable[[Records], Records]:
    """Ask for the open periods of those players; call the answer to wait for it and put them into records.

    Only under the pool's lock.
    """
    sql = """
        SELECT found.*
        FROM unnest(%(players)b::text[]) AS asked (name)
        CROSS JOIN LATERAL (
            SELECT player, player_seq, period::text
            FROM petard.open_period WHERE pool = %(pool)s AND player = asked.name OFFSET 0
        ) AS found
    """
    rows = connection.execute(sql, {"pool": pool, "players": texts(players)})

    def put_into(records: Records) -> Records:
        for player, player_seq, text in cast("Iterable[tuple[str, int, str]]", rows):
            if player in records and records[player].player_seq == player_seq:
                records[player] = records[player]._replace(period=from_text(text))
        return records

    return put_into


def save_periods(connection: Connection, pool: str, records: Mapping[str, PlayerRecord]) -> None:
    """Write the open periods of those records that have one."""
    sql = """
        INSERT INTO petard.open_period (pool, player, player_seq, period)
        SELECT %(pool)s, player, player_seq, period::json
        FROM unnest(%(players)b::text[], %(player_seqs)b::bigint[], %(periods)b::text[])
            AS entry (player, player_seq, period)
        ON CONFLICT (pool, player) DO UPDATE SET player_seq = excluded.player_seq, period = excluded.period
    """
    open_ones = [(player, record) for player, record in records.items() if record.period is not None]
    values = {
        "pool": pool,
        "players": texts(player for player, _ in open_ones),
        "player_seqs": int8s(record.player_seq for _, record in open_ones),
        "periods": texts(to_text(record.period) for _, record in open_ones if record.period is not None),
    }
    connection.execute(sql, values)


def find_running_record(connection: Connection, pool: str, player: str) -> PlayerRecord | None:
    """Return the player's record with the open period, read at one moment; None when there is no record."""
    sql = """
        SELECT rating, rd, volatility, bomb, abandons, penalties, games, wins, draws, losses, peak,
               last_played, rating.player_seq, period::text
        FROM petard.rating AS rating
        LEFT JOIN petard.open_period AS open_period
          ON open_period.pool = rating.pool AND open_period.player = rating.player
         AND open_period.player_seq = rating.player_seq
        WHERE rating.pool = %(pool)s AND rating.player = %(player)s
    """
    row = connection.execute(sql, {"pool": pool, "player": player}, binary=True).fetchone()
    if row is None:
        return None
    record = PlayerRecord(*cast("PlayerRecord", row))
    return record if row[-1] is None else record._replace(period=from_text(str(row[-1])))


def to_text(open_period: OpenPeriod) -> str:
    """Return the open period as JSON, from which `from_text` makes the very same bits."""
    period, start, sums = open_period
    stored = {"period": period._asdict(), "start": start._asdict(), "sums": sums}
    return json.dumps(stored, separators=(",", ":"))


def from_text(text: str) -> OpenPeriod:
    """Return the open period in the text; fields younger than it have their defaults."""
    stored = json.loads(text)
    sums = tuple(tuple(partials) for partials in stored["sums"])
    return OpenPeriod(Period(**stored["period"]), PlayerState(**stored["start"]), sums)
