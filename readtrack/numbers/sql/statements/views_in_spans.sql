-- Absolute views of subjects in spans of hours: those of each row in a span, and those before it, at the hour before its
-- first one; NULL for a subject without history, which was never viewed. Parameters: subjects.
WITH spans (number, subject, since, until) AS (VALUES {spans})
SELECT number, since - 1 AS hour, COALESCE(
    (SELECT past.views FROM {table} past
        WHERE past.subject = spans.subject AND past.hour < spans.since ORDER BY past.hour DESC LIMIT 1),
    (SELECT 0 FROM {table} later WHERE later.subject = spans.subject LIMIT 1)
) AS views
FROM spans
UNION ALL
SELECT spans.number, this.hour, this.views
FROM spans
JOIN {table} this ON this.subject = spans.subject AND this.hour >= spans.since AND this.hour < spans.until
