-- As views_in_spans.sql. Without LATERAL and OFFSET, PostgreSQL would read all of history.
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
CROSS JOIN LATERAL (
    SELECT hour, views FROM {table}
    WHERE subject = spans.subject AND hour >= spans.since AND hour < spans.until
    OFFSET 0
) AS this
