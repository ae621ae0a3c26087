"""The open_period table: what players have done in the rating period that is open."""

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from petard_worker.fold import PlayerRecord
from petard_worker.periods import from_text, to_text
from petard_worker.postgres.columns import int8s, texts
from petard_worker.postgres.connect import Connection

Records = dict[str, PlayerRecord]


def ask_periods(connection: Connection, pool: str, players: Iterable[str]) -> Callable[[Records], Records]:
    """Ask for the open periods of those players; call the answer to wait for it and put them into records.

    Only under the pool's lock. A period that was written before the player's newest change says nothing.
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
