"""The work of one job: one game rated in one transaction, whichever queue brings it.

Written as somebody would who knows Postgres: one connection kept by each thread, its statements prepared; the
event's unique key makes a repeat a no-op, and the players' rows are locked in one order. The maths and the
validation are Petard's own.
"""

import os
import threading
from functools import cache
from typing import LiteralString

import psycopg

from petard_schema import GameEvent, parse_event
from petard_worker.fold import PlayerChange, PlayerRecord, fold_event, new_record, players_of
from petard_worker.ratings.pool_rules import PoolRules, pool_rules

COLUMNS = 13
"""Of a record in the table of ratings; its rating period, which comes last, is none of it."""

TABLES: LiteralString = """
    CREATE TABLE player_rating (
        player text PRIMARY KEY, rating float8 NOT NULL, rd float8 NOT NULL, volatility float8,
        bomb integer NOT NULL, abandons integer NOT NULL, penalties integer NOT NULL, games integer NOT NULL,
        wins integer NOT NULL, draws integer NOT NULL, losses integer NOT NULL, peak float8 NOT NULL,
        last_played timestamptz, player_seq bigint NOT NULL
    ) WITH (fillfactor = 70);
    CREATE TABLE game_event (
        source text, event_id text, received timestamptz NOT NULL DEFAULT now(), body json NOT NULL,
        PRIMARY KEY (event_id, source)
    );
    CREATE TABLE rating_history (
        player text, player_seq bigint, event_id text NOT NULL, source text NOT NULL,
        rating_before float8 NOT NULL, rating_after float8 NOT NULL, rd_before float8 NOT NULL,
        rd_after float8 NOT NULL, bomb_before integer NOT NULL, bomb_after integer NOT NULL,
        expected float8, actual float8, penalty boolean NOT NULL,
        PRIMARY KEY (player, player_seq)
    );
"""

of_this_thread = threading.local()


def rate_game(text: str) -> None:
    """Rate one game in one transaction; a repeat changes nothing."""
    event = parse_event(text.encode())
    connection = database()
    with connection.transaction():
        if not claim_event(connection, event, text):
            return
        records = lock_players(connection, sorted(players_of(event)))
        for change in fold_event(rules(), records, event).changes:
            save_rating(connection, change)
            append_history(connection, event, change)


def database() -> psycopg.Connection:
    """Return this thread's connection."""
    if not hasattr(of_this_thread, "connection"):
        of_this_thread.connection = psycopg.connect(os.environ["PETARD_DATABASE_URL"], autocommit=True)
    connection: psycopg.Connection = of_this_thread.connection
    return connection


@cache
def rules() -> PoolRules:
    """Return the rules that Petard uses by default."""
    return pool_rules("glicko", {})


def claim_event(connection: psycopg.Connection, event: GameEvent, text: str) -> bool:
    """Return False when this event has counted before."""
    sql = "INSERT INTO game_event (source, event_id, body) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
    return connection.execute(sql, (event.source, event.id, text)).rowcount == 1


def lock_players(connection: psycopg.Connection, players: list[str]) -> dict[str, PlayerRecord]:
    """Return the players' records with their rows locked; new players get a row first."""
    found = select_players(connection, players)
    if len(found) < len(players):
        insert_players(connection, [player for player in players if player not in found])
        found = select_players(connection, players)
    return found


def select_players(connection: psycopg.Connection, players: list[str]) -> dict[str, PlayerRecord]:
    """Lock the rows that exist, in the order of the names, and return them."""
    sql = """
        SELECT player, rating, rd, volatility, bomb, abandons, penalties, games, wins, draws, losses, peak,
               last_played, player_seq
        FROM player_rating WHERE player = ANY(%s) ORDER BY player FOR UPDATE
    """
    rows = connection.execute(sql, (players,)).fetchall()
    return {row[0]: PlayerRecord(*row[1:]) for row in rows}


def insert_players(connection: psycopg.Connection, players: list[str]) -> None:
    """Give new players a row."""
    sql = """
        INSERT INTO player_rating
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
    """
    for player in players:
        connection.execute(sql, (player, *new_record(rules())[:COLUMNS]))


def save_rating(connection: psycopg.Connection, change: PlayerChange) -> None:
    """Write where the player stands now."""
    sql = """
        UPDATE player_rating SET rating = %s, rd = %s, volatility = %s, bomb = %s, abandons = %s,
            penalties = %s, games = %s, wins = %s, draws = %s, losses = %s, peak = %s, last_played = %s,
            player_seq = %s
        WHERE player = %s
    """
    connection.execute(sql, (*change.after[:COLUMNS], change.player))


def append_history(connection: psycopg.Connection, event: GameEvent, change: PlayerChange) -> None:
    """Write what the game did to the player."""
    sql = "INSERT INTO rating_history VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    before, after = change.before, change.after
    values = (
        *(change.player, after.player_seq, event.id, event.source),
        *(before.rating, after.rating, before.rd, after.rd, before.bomb, after.bomb),
        *(change.expected, change.actual, change.penalty),
    )
    connection.execute(sql, values)
