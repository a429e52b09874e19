-- Absolute views of subjects, each before an hour of its own, looked up by the index. Parameters: subjects.
WITH asked (subject, hour) AS (VALUES {pairs})
SELECT asked.subject, asked.hour, (
    SELECT past.views FROM {table} past
    WHERE past.subject = asked.subject AND past.hour < asked.hour ORDER BY past.hour DESC LIMIT 1
) AS views
FROM asked
-- A subject without history was never viewed.
WHERE EXISTS (SELECT 1 FROM {table} past WHERE past.subject = asked.subject)
