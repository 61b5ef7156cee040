-- The idempotency keys of requests that joined a run which has another key: the same answer sent twice.

CREATE TABLE joined_keys (
    idempotency_key TEXT PRIMARY KEY,
    run             TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    body_hash       TEXT NOT NULL
);
CREATE INDEX joined_keys_by_run ON joined_keys (run);
