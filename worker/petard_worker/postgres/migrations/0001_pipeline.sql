-- The whole pipeline: pools, the ledger, ratings, changes, dead letters, and who may touch them.
-- Every key and every join carries the pool: a pool can move to its own server.

CREATE TABLE petard.pool (
    name        text        NOT NULL,
    system      text        NOT NULL,
    parameters  jsonb       NOT NULL,
    version     integer     NOT NULL DEFAULT 1,
    seq         bigint      NOT NULL DEFAULT 0,
    epoch       bigint      NOT NULL DEFAULT 1,
    newest      timestamptz,
    settings    jsonb       NOT NULL DEFAULT '{}',
    stopped     text,
    created     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pool_pkey PRIMARY KEY (name),
    CONSTRAINT pool_name_is_a_pool_name CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,63}$'),
    CONSTRAINT pool_version_starts_at_one CHECK (version >= 1),
    CONSTRAINT pool_seq_is_not_negative CHECK (seq >= 0),
    CONSTRAINT pool_epoch_starts_at_one CHECK (epoch >= 1)
) WITH (fillfactor = 50);
COMMENT ON TABLE petard.pool IS 'everything that shares one list of ratings; its row lock serialises the pool';
COMMENT ON COLUMN petard.pool.seq IS 'seq of the newest ledger entry: taken under the row lock, so gapless and in commit order';
COMMENT ON COLUMN petard.pool.epoch IS 'goes up when Redis was found ahead of this database';
COMMENT ON COLUMN petard.pool.newest IS 'time of the newest rated event; an earlier one is late';
COMMENT ON COLUMN petard.pool.stopped IS 'why nothing is applied, or null';

CREATE TABLE petard.pool_version (
    pool       text        NOT NULL,
    version    integer     NOT NULL,
    system     text        NOT NULL,
    parameters jsonb       NOT NULL,
    since_seq  bigint      NOT NULL,
    created    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pool_version_pkey PRIMARY KEY (pool, version),
    CONSTRAINT pool_version_belongs_to_a_pool FOREIGN KEY (pool) REFERENCES petard.pool (name)
);
COMMENT ON TABLE petard.pool_version IS 'parameters in force from ledger entry since_seq on';

CREATE TABLE petard.ledger (
    pool     text        NOT NULL,
    seq      bigint      NOT NULL,
    source   text        NOT NULL,
    event_id text        NOT NULL,
    type     text        NOT NULL,
    game     text,
    time     timestamptz NOT NULL,
    received timestamptz NOT NULL DEFAULT now(),
    outcome  text        NOT NULL,
    reason   text,
    counts   boolean     NOT NULL,
    late     boolean     NOT NULL,
    version  integer     NOT NULL,
    body     json        NOT NULL,
    CONSTRAINT ledger_pkey PRIMARY KEY (pool, seq),
    CONSTRAINT ledger_counts_an_event_once UNIQUE (pool, event_id, source),
    CONSTRAINT ledger_seq_starts_at_one CHECK (seq >= 1),
    CONSTRAINT ledger_ends_rated_or_ignored CHECK (
        (outcome = 'rated' AND reason IS NULL) OR (outcome = 'ignored' AND reason IS NOT NULL)
    ),
    CONSTRAINT ledger_counts_rated_games_only CHECK (NOT counts OR (outcome = 'rated' AND game IS NOT NULL))
);
CREATE UNIQUE INDEX ledger_counts_a_game_once ON petard.ledger (pool, game) WHERE counts;
COMMENT ON TABLE petard.ledger IS 'every accepted event of a pool, in the order it was applied; never updated, never deleted';
COMMENT ON COLUMN petard.ledger.counts IS
    'true for the report by which its game counts; a rated entry may concern a game without being its report';
COMMENT ON COLUMN petard.ledger.body IS 'the event exactly as it came; json and not jsonb, so that nothing is normalised away';

CREATE TABLE petard.rating (
    pool        text             NOT NULL,
    player      text             NOT NULL,
    rating      double precision NOT NULL,
    rd          double precision NOT NULL,
    volatility  double precision,
    bomb        integer          NOT NULL,
    bomb_cap    integer          NOT NULL,
    abandons    integer          NOT NULL,
    penalties   integer          NOT NULL,
    games       integer          NOT NULL,
    wins        integer          NOT NULL,
    draws       integer          NOT NULL,
    losses      integer          NOT NULL,
    peak        double precision NOT NULL,
    last_played timestamptz,
    player_seq  bigint           NOT NULL,
    CONSTRAINT rating_pkey PRIMARY KEY (pool, player),
    CONSTRAINT rating_is_finite CHECK (
        rating BETWEEN -1e300 AND 1e300 AND rd BETWEEN 0 AND 1e300 AND peak BETWEEN -1e300 AND 1e300
        AND (volatility IS NULL OR volatility BETWEEN 0 AND 1e300)
    ),
    CONSTRAINT rating_bomb_is_within_its_cap CHECK (bomb BETWEEN 0 AND bomb_cap),
    CONSTRAINT rating_counters_are_not_negative CHECK (
        abandons >= 0 AND penalties >= 0 AND wins >= 0 AND draws >= 0 AND losses >= 0 AND player_seq >= 1
    ),
    CONSTRAINT rating_games_are_wins_draws_losses CHECK (games = wins + draws + losses),
    CONSTRAINT rating_penalties_are_abandons CHECK (penalties <= abandons)
) WITH (fillfactor = 70);
COMMENT ON TABLE petard.rating IS
    'where each player stands; no index on a rating, so that updates stay within their page (ranks live in Redis)';
COMMENT ON COLUMN petard.rating.bomb_cap IS 'the cap in force when the bomb last changed';

CREATE TABLE petard.change (
    pool              text             NOT NULL,
    player            text             NOT NULL,
    player_seq        bigint           NOT NULL,
    seq               bigint           NOT NULL,
    rating_before     double precision NOT NULL,
    rating_after      double precision NOT NULL,
    rd_before         double precision NOT NULL,
    rd_after          double precision NOT NULL,
    volatility_before double precision,
    volatility_after  double precision,
    bomb_before       integer          NOT NULL,
    bomb_after        integer          NOT NULL,
    games_before      integer          NOT NULL,
    games_after       integer          NOT NULL,
    expected          double precision,
    actual            double precision,
    rd_aged           double precision,
    penalty           boolean          NOT NULL,
    late              boolean          NOT NULL,
    CONSTRAINT change_pkey PRIMARY KEY (pool, player, player_seq),
    CONSTRAINT change_belongs_to_a_ledger_entry CHECK (seq >= 1 AND player_seq >= 1),
    CONSTRAINT change_is_finite CHECK (
        rating_before BETWEEN -1e300 AND 1e300 AND rating_after BETWEEN -1e300 AND 1e300
        AND rd_before BETWEEN 0 AND 1e300 AND rd_after BETWEEN 0 AND 1e300
    ),
    CONSTRAINT change_counters_are_not_negative CHECK (
        bomb_before >= 0 AND bomb_after >= 0 AND games_before >= 0 AND games_after >= 0
    )
);
CREATE INDEX change_by_seq ON petard.change (pool, seq);
COMMENT ON TABLE petard.change IS 'one player before and after one ledger entry, and why: history and outbox in one';

CREATE TABLE petard.dead_letter (
    id         bigint      GENERATED ALWAYS AS IDENTITY,
    pool       text        NOT NULL,
    digest     bytea       NOT NULL,
    body       bytea       NOT NULL,
    source     text,
    event_id   text,
    game       text,
    reason     text        NOT NULL,
    detail     text        NOT NULL,
    attempts   integer     NOT NULL DEFAULT 1,
    first_seen timestamptz NOT NULL DEFAULT now(),
    last_seen  timestamptz NOT NULL DEFAULT now(),
    state      text        NOT NULL DEFAULT 'open',
    actor      text,
    CONSTRAINT dead_letter_pkey PRIMARY KEY (pool, id),
    CONSTRAINT dead_letter_keeps_a_body_once UNIQUE (pool, digest),
    CONSTRAINT dead_letter_digest_is_sha256 CHECK (octet_length(digest) = 32),
    CONSTRAINT dead_letter_attempts_are_counted CHECK (attempts >= 1),
    CONSTRAINT dead_letter_state_is_known CHECK (state IN ('open', 'replayed', 'discarded')),
    CONSTRAINT dead_letter_reason_is_a_code CHECK (reason ~ '^[a-z_]+(:.*)?$')
);
CREATE INDEX dead_letter_by_id ON petard.dead_letter (id);
CREATE INDEX dead_letter_open ON petard.dead_letter (pool, reason) WHERE state = 'open';
CREATE INDEX dead_letter_by_event ON petard.dead_letter (event_id) WHERE event_id IS NOT NULL;
COMMENT ON TABLE petard.dead_letter IS 'events that could not be accepted, byte by byte as they came';

-- What the service may do, and no more: the ledger and the changes are history, so nobody but the owner can
-- rewrite them.
GRANT USAGE ON SCHEMA petard TO petard_worker, petard_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA petard TO petard_worker, petard_reader;
-- Tables of later migrations can be read from the start; what a worker may write is granted table by table.
ALTER DEFAULT PRIVILEGES FOR ROLE petard_owner IN SCHEMA petard
    GRANT SELECT ON TABLES TO petard_worker, petard_reader;
GRANT INSERT, UPDATE ON petard.pool, petard.rating, petard.dead_letter TO petard_worker;
GRANT INSERT ON petard.pool_version, petard.ledger, petard.change TO petard_worker;
