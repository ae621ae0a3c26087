-- What a worker sends of a batch: arrays of these, which Postgres takes a third faster than an array per column.
-- They are types of their own, texts first, so that a table may change while older workers run.

CREATE TYPE petard.new_entry AS (
    source text, event_id text, type text, game text, reason text, body text,
    seq bigint, time timestamptz, late boolean
);
CREATE TYPE petard.new_change AS (
    player text,
    player_seq bigint, seq bigint,
    rating_before double precision, rating_after double precision,
    rd_before double precision, rd_after double precision,
    volatility_before double precision, volatility_after double precision,
    bomb_before integer, bomb_after integer, games_before integer, games_after integer,
    expected double precision, actual double precision, rd_aged double precision,
    penalty boolean, late boolean
);
CREATE TYPE petard.new_rating AS (
    player text,
    rating double precision, rd double precision, volatility double precision,
    bomb integer, abandons integer, penalties integer,
    games integer, wins integer, draws integer, losses integer,
    peak double precision, last_played timestamptz, player_seq bigint
);
