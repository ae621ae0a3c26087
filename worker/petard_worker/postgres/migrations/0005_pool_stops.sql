-- Since when a pool is stopped, and how often that has happened: what an alert and its clearing go by.

ALTER TABLE petard.pool ADD COLUMN stopped_at timestamptz;
ALTER TABLE petard.pool ADD COLUMN stops integer NOT NULL DEFAULT 0;
UPDATE petard.pool SET stopped_at = now(), stops = 1 WHERE stopped IS NOT NULL;
-- A worker of the release before stops a pool without saying since when.
ALTER TABLE petard.pool ADD CONSTRAINT pool_that_runs_is_not_stopped_since
    CHECK (stopped IS NOT NULL OR stopped_at IS NULL) NOT VALID;
ALTER TABLE petard.pool ADD CONSTRAINT pool_stops_are_not_negative CHECK (stops >= 0) NOT VALID;
COMMENT ON COLUMN petard.pool.stops IS 'how often the pool has been stopped; only goes up';
