-- The journal is the truth; runs is its projection and holds the lease. Ids and keys are compared byte by byte,
-- whatever the database's language is.
CREATE TABLE runs (
    id               TEXT COLLATE "C" PRIMARY KEY,
    state            TEXT             NOT NULL,
    mode             TEXT             NOT NULL,
    source           TEXT             NOT NULL,
    user_id          TEXT             NOT NULL,
    guild_id         TEXT             NOT NULL DEFAULT '',
    channel_id       TEXT             NOT NULL DEFAULT '',
    message          TEXT             NOT NULL,
    parent           TEXT COLLATE "C",
    cause            TEXT,
    c_final          DOUBLE PRECISION,
    cap_nanos        BIGINT           NOT NULL,
    spent_nanos      BIGINT           NOT NULL DEFAULT 0,
    accepted_ms      BIGINT           NOT NULL,
    finished_ms      BIGINT,
    idempotency_key  TEXT COLLATE "C" UNIQUE,
    body_hash        TEXT             NOT NULL,
    owner            TEXT,
    epoch            BIGINT           NOT NULL DEFAULT 0,
    lease_until      TIMESTAMPTZ      NOT NULL DEFAULT '-infinity',
    cancel_requested BIGINT           NOT NULL DEFAULT 0,
    head_seq         BIGINT           NOT NULL,
    head_hash        TEXT             NOT NULL
) WITH (fillfactor = 70); -- each append updates the row: room for the new version on the same page

CREATE INDEX runs_in_flight ON runs (accepted_ms) WHERE state IN ('queued', 'running');
CREATE INDEX runs_by_state ON runs (state, id);
CREATE INDEX runs_by_asker ON runs (user_id, source, guild_id, channel_id, finished_ms);
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_by_user_and_time ON runs (user_id, accepted_ms);
CREATE INDEX runs_by_guild_and_time ON runs (guild_id, accepted_ms);
CREATE INDEX runs_by_time ON runs (accepted_ms);
CREATE INDEX runs_by_end ON runs (finished_ms);

CREATE TABLE entries (
    run   TEXT COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq   BIGINT           NOT NULL,
    at_ms BIGINT           NOT NULL,
    key   TEXT COLLATE "C" NOT NULL,
    body  TEXT             NOT NULL,
    prev  TEXT             NOT NULL,
    hash  TEXT             NOT NULL,
    PRIMARY KEY (run, seq),
    UNIQUE (run, key)
);

CREATE TABLE tokens (
    id         TEXT COLLATE "C" PRIMARY KEY,
    name       TEXT   NOT NULL,
    scopes     TEXT   NOT NULL,
    hash       TEXT   NOT NULL,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT,
    revoked_ms BIGINT
);
