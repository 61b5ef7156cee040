-- Entries have one index instead of two: their keys. A run has few entries, so they are sorted as they are read.
-- SQLite cannot drop the index of a primary key, so the table is written anew.

DROP VIEW tool_step_diagnostics;
DROP VIEW tool_step_codes;
DROP VIEW tool_step_files;
DROP VIEW tool_steps;

CREATE TABLE entries_by_key (
    run    TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq    INTEGER NOT NULL,
    at_ms  INTEGER NOT NULL,
    key    TEXT    NOT NULL,
    body   TEXT    NOT NULL,
    prev   TEXT    NOT NULL,
    hash   TEXT    NOT NULL,
    packed BLOB,
    UNIQUE (run, key)
) STRICT;
INSERT INTO entries_by_key (run, seq, at_ms, key, body, prev, hash, packed)
SELECT run, seq, at_ms, key, body, prev, hash, packed FROM entries ORDER BY rowid;
DROP TABLE entries;
ALTER TABLE entries_by_key RENAME TO entries;

CREATE INDEX entries_of_steps ON entries (at_ms, run, seq) WHERE key LIKE 'step/%';

CREATE VIEW tool_steps AS
SELECT run, seq, at_ms, body,
       json_extract(body, '$.data.tool') AS tool,
       CASE WHEN json_extract(body, '$.data.ok') THEN 1 ELSE 0 END AS ok,
       json_extract(body, '$.data.error') AS error,
       COALESCE(json_array_length(body, '$.data.changed'), 0) AS changes
FROM entries WHERE key LIKE 'step/%' AND key LIKE '%/finished' AND json_extract(body, '$.data.tool') <> 'undo';

CREATE VIEW tool_step_files AS
SELECT s.run, s.seq, s.at_ms, s.tool, s.ok, f.value AS file
FROM tool_steps s, json_each(s.body, '$.data.files') f;

CREATE VIEW tool_step_codes AS
SELECT s.run, s.seq, s.at_ms, c.value AS code
FROM tool_steps s, json_each(s.body, '$.data.codes') c;

CREATE VIEW tool_step_diagnostics AS
SELECT s.run, s.seq, s.at_ms, json_extract(d.value, '$.code') AS code, json_extract(d.value, '$.file') AS file
FROM tool_steps s, json_each(s.body, '$.data.value.diagnostics') d
WHERE json_extract(d.value, '$.code') IS NOT NULL AND json_extract(d.value, '$.file') IS NOT NULL;
