-- What evidence of tool plans is counted from: the ended steps of executions, with their files and diagnostics.

CREATE INDEX entries_of_steps ON entries (at_ms, run, seq) WHERE key LIKE 'step/%';
CREATE INDEX executions_by_plan ON runs (parent, id) WHERE kind = 'execution';

CREATE VIEW tool_steps AS
SELECT run, seq, at_ms, body,
       json_extract(body, '$.data.tool') AS tool,
       CASE WHEN json_extract(body, '$.data.ok') THEN 1 ELSE 0 END AS ok,
       json_extract(body, '$.data.error') AS error,
       COALESCE(json_array_length(body, '$.data.changed'), 0) AS changes
FROM entries WHERE key LIKE 'step/%' AND key LIKE '%/finished';

CREATE VIEW tool_step_files AS
SELECT s.run, s.seq, s.at_ms, s.tool, s.ok, f.value AS file
FROM tool_steps s, json_each(s.body, '$.data.files') f;

CREATE VIEW tool_step_codes AS
SELECT s.run, s.seq, s.at_ms, c.value AS code
FROM tool_steps s, json_each(s.body, '$.data.codes') c;
