-- Bearer tokens, and look-ups for spending limits and retention.
CREATE TABLE tokens (
    id         TEXT    PRIMARY KEY,
    name       TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,
    hash       TEXT    NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    revoked_ms INTEGER
) STRICT;

CREATE INDEX runs_by_user_and_time ON runs (user_id, accepted_ms);
CREATE INDEX runs_by_guild_and_time ON runs (guild_id, accepted_ms);
CREATE INDEX runs_by_time ON runs (accepted_ms);
CREATE INDEX runs_by_end ON runs (finished_ms);
