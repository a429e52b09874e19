-- Absolute views of subjects before each of some hours, each looked up by the index. Parameters: subjects.
WITH asked (subject) AS (VALUES {subjects}), ends (hour) AS (VALUES {hours})
SELECT asked.subject, ends.hour, (
    SELECT past.views FROM {table} past
    WHERE past.subject = asked.subject AND past.hour < ends.hour ORDER BY past.hour DESC LIMIT 1
)
FROM asked CROSS JOIN ends
-- Most models of a site may have no row.
WHERE EXISTS (SELECT 1 FROM {table} past WHERE past.subject = asked.subject)
