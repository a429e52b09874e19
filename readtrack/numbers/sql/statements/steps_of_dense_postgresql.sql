-- As steps.sql, but of subjects with rows in most hours, which have most of all rows, only the last row of each period
-- is read, by the index. They are looked for among the foremost subjects.
-- Parameters: the array of subjects, best first.
WITH asked AS (
    SELECT unnest(%s::text[]) AS subject
),
foremost AS (
    SELECT subject FROM asked LIMIT 400
),
indexed AS (
    SELECT subject FROM {table}
    WHERE hour >= {until} - 48 AND hour < {until} AND subject = ANY(ARRAY(SELECT subject FROM foremost))
    GROUP BY 1 HAVING COUNT(*) > {dense}
    INTERSECT
    SELECT subject FROM {table}
    WHERE hour >= {earlier} AND hour < {earlier} + 48 AND subject = ANY(ARRAY(SELECT subject FROM foremost))
    GROUP BY 1 HAVING COUNT(*) > {dense}
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
