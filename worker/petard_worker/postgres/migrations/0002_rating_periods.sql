-- Pools whose games are rated by periods: what everybody has done in the one that is open.

CREATE TABLE petard.open_period (
    pool       text   NOT NULL,
    player     text   NOT NULL,
    player_seq bigint NOT NULL,
    period     json   NOT NULL,
    CONSTRAINT open_period_pkey PRIMARY KEY (pool, player)
);
COMMENT ON TABLE petard.open_period IS
    'where each player of a pool with rating periods stood at the start of one, and exact sums of the games in it';
COMMENT ON COLUMN petard.open_period.player_seq IS
    'the change after which this was so; if the player has changed since without it, it says nothing any more';

GRANT INSERT, UPDATE ON petard.open_period TO petard_worker;

-- From here on Petard itself writes entries into the ledger, under a source that nobody else may use.
ALTER TABLE petard.ledger ADD CONSTRAINT ledger_own_source_reports_no_game
    CHECK (source <> '/petard' OR game IS NULL) NOT VALID;
