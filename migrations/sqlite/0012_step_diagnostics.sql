-- The diagnostics of ended steps, each with its code and its own file.

CREATE VIEW tool_step_diagnostics AS
SELECT s.run, s.seq, s.at_ms, json_extract(d.value, '$.code') AS code, json_extract(d.value, '$.file') AS file
FROM tool_steps s, json_each(s.body, '$.data.value.diagnostics') d
WHERE json_extract(d.value, '$.code') IS NOT NULL AND json_extract(d.value, '$.file') IS NOT NULL;
