-- What evidence of tool plans is counted from: the ended steps of executions, with their files and diagnostics.

CREATE INDEX entries_of_steps ON entries (at_ms, run, seq) WHERE key LIKE 'step/%';
CREATE INDEX executions_by_plan ON runs (parent, id) WHERE kind = 'execution';

CREATE VIEW tool_steps AS
SELECT run, seq, at_ms, data,
       data ->> 'tool' AS tool,
       CASE WHEN (data ->> 'ok')::boolean THEN 1::bigint ELSE 0::bigint END AS ok,
       data ->> 'error' AS error,
       COALESCE(jsonb_array_length(data -> 'changed'), 0)::bigint AS changes
FROM (SELECT run, seq, at_ms, body::jsonb -> 'data' AS data
      FROM entries WHERE key LIKE 'step/%' AND key LIKE '%/finished') ended;

CREATE VIEW tool_step_files AS
SELECT s.run, s.seq, s.at_ms, s.tool, s.ok, f.file
FROM tool_steps s CROSS JOIN LATERAL jsonb_array_elements_text(COALESCE(s.data -> 'files', '[]'::jsonb)) AS f (file);

CREATE VIEW tool_step_codes AS
SELECT s.run, s.seq, s.at_ms, c.code
FROM tool_steps s CROSS JOIN LATERAL jsonb_array_elements_text(COALESCE(s.data -> 'codes', '[]'::jsonb)) AS c (code);
