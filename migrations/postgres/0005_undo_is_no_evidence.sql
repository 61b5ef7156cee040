-- Putting files back is no use of a tool, so evidence does not count it.

CREATE OR REPLACE VIEW tool_steps AS
SELECT run, seq, at_ms, data,
       data ->> 'tool' AS tool,
       CASE WHEN (data ->> 'ok')::boolean THEN 1::bigint ELSE 0::bigint END AS ok,
       data ->> 'error' AS error,
       COALESCE(jsonb_array_length(data -> 'changed'), 0)::bigint AS changes
FROM (SELECT run, seq, at_ms, body::jsonb -> 'data' AS data
      FROM entries WHERE key LIKE 'step/%' AND key LIKE '%/finished') ended
WHERE data ->> 'tool' <> 'undo';
