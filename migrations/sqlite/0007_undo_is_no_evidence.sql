-- Putting files back is no use of a tool, so evidence does not count it.

DROP VIEW tool_steps;
CREATE VIEW tool_steps AS
SELECT run, seq, at_ms, body,
       json_extract(body, '$.data.tool') AS tool,
       CASE WHEN json_extract(body, '$.data.ok') THEN 1 ELSE 0 END AS ok,
       json_extract(body, '$.data.error') AS error,
       COALESCE(json_array_length(body, '$.data.changed'), 0) AS changes
FROM entries WHERE key LIKE 'step/%' AND key LIKE '%/finished' AND json_extract(body, '$.data.tool') <> 'undo';
