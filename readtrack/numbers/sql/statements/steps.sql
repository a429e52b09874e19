-- The highest absolute counts of subjects by period (slot) in a range of hours, and at -1 those from before it, of
-- subjects with rows in it. The highest counts of a period stand for its rows, of which there are too many to sort.
-- Parameters: those of the condition.
WITH these AS (
    SELECT subject, {period} AS slot, MAX(views) AS views
    FROM {table} WHERE hour >= {since} AND hour < {until} AND {condition} GROUP BY 1, 2
)
SELECT subject, slot, views FROM these
UNION ALL
SELECT
    this.subject,
    -1,
    (SELECT past.views FROM {table} past
        WHERE past.subject = this.subject AND past.hour < {since} ORDER BY past.hour DESC LIMIT 1)
FROM (SELECT DISTINCT subject FROM these) AS this
