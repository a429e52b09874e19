-- Absolute views of subjects before each of some hours, each found by the index. Parameters: subjects.
WITH names (subject) AS (VALUES {names}), ends (hour) AS (VALUES {hours})
SELECT names.subject, ends.hour, (
    SELECT past.views FROM {table} past
    WHERE past.subject = names.subject AND past.hour < ends.hour ORDER BY past.hour DESC LIMIT 1
)
FROM names CROSS JOIN ends
-- Most models of a site may have no row.
WHERE EXISTS (SELECT 1 FROM {table} past WHERE past.subject = names.subject)
