-- The diagnostics of ended steps, each with its code and its own file.

CREATE VIEW tool_step_diagnostics AS
SELECT s.run, s.seq, s.at_ms, d.diagnostic ->> 'code' AS code, d.diagnostic ->> 'file' AS file
FROM tool_steps s CROSS JOIN LATERAL jsonb_array_elements(
    CASE WHEN jsonb_typeof(s.data -> 'value' -> 'diagnostics') = 'array'
         THEN s.data -> 'value' -> 'diagnostics' ELSE '[]'::jsonb END) AS d (diagnostic)
WHERE d.diagnostic ->> 'code' IS NOT NULL AND d.diagnostic ->> 'file' IS NOT NULL;
