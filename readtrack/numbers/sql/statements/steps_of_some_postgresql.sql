-- As steps.sql, but of each asked period only the last row is read, by the index.
-- Parameters: the array of subjects.
WITH asked AS (
    SELECT unnest(%s::text[]) AS subject
),
indexed AS (
    SELECT subject FROM asked
    EXCEPT
    -- Subjects that were reset: their last row of a period may not be the highest.
    SELECT unnest(ARRAY[{names}]) FROM {resets}
),
begun AS MATERIALIZED (
    SELECT subject, (SELECT past.hour FROM {table} past
        WHERE past.subject = indexed.subject AND past.hour >= {since} AND past.hour < {until}
        ORDER BY past.hour LIMIT 1) AS first_hour
    FROM indexed
),
these AS MATERIALIZED (
    SELECT subject, {period} AS slot, MAX(views) AS views
    FROM {table}
    WHERE hour >= {since} AND hour < {until}
        AND subject = ANY(ARRAY(SELECT subject FROM asked EXCEPT SELECT subject FROM begun))
    GROUP BY 1, 2
)
SELECT subject, slot, views FROM these
UNION ALL
SELECT this.subject, -1, past.views
FROM (SELECT subject FROM these UNION SELECT subject FROM begun) AS this LEFT JOIN LATERAL (
    SELECT views FROM {table} past
    WHERE past.subject = this.subject AND past.hour < {since} ORDER BY past.hour DESC LIMIT 1
) AS past ON TRUE
UNION ALL
SELECT begun.subject, ends.slot, past.views
FROM begun, unnest(ARRAY[{ends}], ARRAY[{periods}]) AS ends (hour, slot), LATERAL (
    SELECT views FROM {table} past
    WHERE past.subject = begun.subject AND past.hour < ends.hour ORDER BY past.hour DESC LIMIT 1
) AS past
WHERE ends.hour > begun.first_hour
