-- What an operator needs of dead letters: how every attempt ended, which of our exceptions it was, repaired bodies,
-- replays that survive a kill, and an end for those that are closed.

ALTER TABLE petard.dead_letter
    ADD COLUMN version        text,
    ADD COLUMN worker         text,
    ADD COLUMN logged         integer NOT NULL DEFAULT 0,
    ADD COLUMN traceback_hash text,
    ADD COLUMN traceback      text,
    ADD COLUMN closed         timestamptz,
    ADD COLUMN discard_reason text,
    ADD COLUMN edited_body    bytea,
    ADD COLUMN edited_digest  bytea,
    ADD COLUMN edited_by      text,
    ADD COLUMN edited_at      timestamptz;
-- Not validated: in the rows that exist all of these are null, so there is nothing to read them for.
ALTER TABLE petard.dead_letter
    ADD CONSTRAINT dead_letter_edit_is_whole CHECK (
        num_nulls(edited_body, edited_digest, edited_by, edited_at) IN (0, 4)
    ) NOT VALID,
    ADD CONSTRAINT dead_letter_edited_digest_is_sha256 CHECK (octet_length(edited_digest) = 32) NOT VALID,
    ADD CONSTRAINT dead_letter_traceback_has_a_hash CHECK (
        (traceback IS NULL) = (traceback_hash IS NULL)
    ) NOT VALID;
CREATE UNIQUE INDEX dead_letter_keeps_an_edited_body_once ON petard.dead_letter (pool, edited_digest)
    WHERE edited_digest IS NOT NULL;
-- Groups are counted from this index alone, however large the bodies beside it are.
CREATE INDEX dead_letter_groups ON petard.dead_letter (pool, reason, traceback_hash)
    INCLUDE (first_seen, last_seen) WHERE state = 'open';
-- The table is locked already, and nobody waits for long.
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX petard.dead_letter_open;
COMMENT ON COLUMN petard.dead_letter.reason IS 'of the newest attempt, like detail, version, worker and traceback';
COMMENT ON COLUMN petard.dead_letter.version IS 'of the code that refused it';
COMMENT ON COLUMN petard.dead_letter.logged IS 'how many earlier attempts were written to dead_letter_attempt';
COMMENT ON COLUMN petard.dead_letter.traceback_hash IS
    'of an exception of ours: its type and the functions it came through, without line numbers, texts and values';
COMMENT ON COLUMN petard.dead_letter.closed IS 'when it was replayed or discarded; null in letters of before';
COMMENT ON COLUMN petard.dead_letter.edited_body IS 'what a replay sends instead of the body, which stays as it came';

CREATE TABLE petard.dead_letter_attempt (
    pool           text        NOT NULL,
    letter         bigint      NOT NULL,
    slot           integer     NOT NULL,
    attempt        integer     NOT NULL,
    at             timestamptz NOT NULL,
    reason         text        NOT NULL,
    detail         text        NOT NULL,
    traceback_hash text,
    version        text,
    worker         text,
    state          text        NOT NULL,
    actor          text,
    closed         timestamptz,
    discard_reason text,
    CONSTRAINT dead_letter_attempt_pkey PRIMARY KEY (pool, letter, slot),
    CONSTRAINT dead_letter_attempt_log_is_bounded CHECK (slot BETWEEN 1 AND 20)
);
COMMENT ON TABLE petard.dead_letter_attempt IS
    'how earlier attempts of a dead letter ended: the first ten of them and the last ten; the newest is the letter itself';
COMMENT ON COLUMN petard.dead_letter_attempt.attempt IS
    'how many attempts there had been: of the same bytes many times in one batch only the last is written down';
COMMENT ON COLUMN petard.dead_letter_attempt.state IS 'what had been done with the letter when it came back';

CREATE SEQUENCE petard.replay_run_number;
CREATE TABLE petard.replay_run (
    pool     text        NOT NULL,
    run      bigint      NOT NULL,
    actor    text        NOT NULL,
    chosen   text        NOT NULL,
    rate     integer     NOT NULL,
    letters  bigint      NOT NULL,
    token    uuid        NOT NULL,
    started  timestamptz NOT NULL DEFAULT now(),
    finished timestamptz,
    CONSTRAINT replay_run_pkey PRIMARY KEY (pool, run),
    CONSTRAINT replay_run_has_a_rate CHECK (rate >= 1),
    CONSTRAINT replay_run_has_letters CHECK (letters >= 1)
);
CREATE UNIQUE INDEX replay_run_one_at_a_time ON petard.replay_run (pool) WHERE finished IS NULL;
COMMENT ON TABLE petard.replay_run IS 'replays of dead letters: one row for each pool of a run';
COMMENT ON COLUMN petard.replay_run.token IS 'names the run in Redis, where numbers of another database may live on';
COMMENT ON COLUMN petard.replay_run.chosen IS 'which letters were asked for, in words';

CREATE TABLE petard.replay_letter (
    pool     text    NOT NULL,
    letter   bigint  NOT NULL,
    run      bigint  NOT NULL,
    state    text    NOT NULL DEFAULT 'waiting',
    attempts integer,
    digest   bytea,
    at       timestamptz,
    CONSTRAINT replay_letter_pkey PRIMARY KEY (pool, letter, run),
    CONSTRAINT replay_letter_state_is_known CHECK (state IN ('waiting', 'sent', 'closed', 'cut', 'dropped'))
);
CREATE INDEX replay_letter_by_run ON petard.replay_letter (run, letter);
COMMENT ON TABLE petard.replay_letter IS 'the letters of a run, fixed at its start';
COMMENT ON COLUMN petard.replay_letter.state IS
    'closed: by somebody else before its turn; cut: only its start was kept; dropped: the run was given up';
COMMENT ON COLUMN petard.replay_letter.attempts IS 'of the letter when its turn came, and with digest what was sent';

-- The service cannot delete letters; this deletes closed ones for it, those that are still as they were exported.
CREATE FUNCTION petard.purge_dead_letters(pools text[], ids bigint[], tries integer[]) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH doomed AS (
        SELECT letter.pool, letter.id
        FROM unnest(pools, ids, tries) AS asked (pool, id, attempts)
        JOIN petard.dead_letter AS letter
            ON letter.pool = asked.pool AND letter.id = asked.id AND letter.attempts = asked.attempts
        WHERE letter.state <> 'open'
        FOR UPDATE OF letter SKIP LOCKED
    ), log AS (
        DELETE FROM petard.dead_letter_attempt AS attempt USING doomed
        WHERE attempt.pool = doomed.pool AND attempt.letter = doomed.id
    ), replays AS (
        DELETE FROM petard.replay_letter AS replay USING doomed
        WHERE replay.pool = doomed.pool AND replay.letter = doomed.id
    ), gone AS (
        DELETE FROM petard.dead_letter AS letter USING doomed
        WHERE letter.pool = doomed.pool AND letter.id = doomed.id
        RETURNING 1
    )
    SELECT count(*) FROM gone;
END;
REVOKE ALL ON FUNCTION petard.purge_dead_letters FROM PUBLIC;
GRANT EXECUTE ON FUNCTION petard.purge_dead_letters TO petard_worker;

GRANT INSERT, UPDATE ON petard.dead_letter_attempt, petard.replay_run, petard.replay_letter TO petard_worker;
GRANT USAGE ON SEQUENCE petard.replay_run_number TO petard_worker;
