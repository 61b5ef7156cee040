-- The journal is the truth; runs is its projection and holds the lease.
CREATE TABLE runs (
    id               TEXT    PRIMARY KEY,
    state            TEXT    NOT NULL,
    mode             TEXT    NOT NULL,
    source           TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    guild_id         TEXT    NOT NULL DEFAULT '',
    channel_id       TEXT    NOT NULL DEFAULT '',
    message          TEXT    NOT NULL,
    parent           TEXT,
    cause            TEXT,
    c_final          REAL,
    cap_nanos        INTEGER NOT NULL,
    spent_nanos      INTEGER NOT NULL DEFAULT 0,
    accepted_ms      INTEGER NOT NULL,
    finished_ms      INTEGER,
    idempotency_key  TEXT    UNIQUE,
    body_hash        TEXT    NOT NULL,
    owner            TEXT,
    epoch            INTEGER NOT NULL DEFAULT 0,
    lease_until_ms   INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    head_seq         INTEGER NOT NULL,
    head_hash        TEXT    NOT NULL
) STRICT;

CREATE INDEX runs_by_state ON runs (state, accepted_ms);
CREATE INDEX runs_by_asker ON runs (user_id, source, guild_id, channel_id, accepted_ms);

CREATE TABLE entries (
    run    TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq    INTEGER NOT NULL,
    at_ms  INTEGER NOT NULL,
    key    TEXT    NOT NULL,
    body   TEXT    NOT NULL,
    prev   TEXT    NOT NULL,
    hash   TEXT    NOT NULL,
    PRIMARY KEY (run, seq),
    UNIQUE (run, key)
) STRICT;
