-- As steps.sql. Most rows are of few subjects, those viewed in most hours; of these only the last row of each place is
-- read, found by the index. They are looked for among the first 400. Parameters: the array of subjects, best first.
WITH names AS (
    SELECT unnest(%s::text[]) AS subject
),
foremost AS (
    SELECT subject FROM names LIMIT 400
),
dense AS (
    SELECT subject FROM {table}
    WHERE hour >= {until} - 48 AND hour < {until} AND subject = ANY(ARRAY(SELECT subject FROM foremost))
    GROUP BY 1 HAVING COUNT(*) > {dense}
    INTERSECT
    SELECT subject FROM {table}
    WHERE hour >= {earlier} AND hour < {earlier} + 48 AND subject = ANY(ARRAY(SELECT subject FROM foremost))
    GROUP BY 1 HAVING COUNT(*) > {dense}
    EXCEPT
    -- Their last row of a place may not be the highest.
    SELECT unnest(ARRAY[subject, 'reads:' || subject]) FROM {resets}
),
begun AS MATERIALIZED (
    SELECT subject, (SELECT past.hour FROM {table} past
        WHERE past.subject = dense.subject AND past.hour >= {since} ORDER BY past.hour LIMIT 1) AS first_hour
    FROM dense
),
these AS MATERIALIZED (
    SELECT subject, {place} AS place, MAX(views) AS views, MAX(visitors) AS visitors
    FROM {table}
    WHERE hour >= {since} AND hour < {until}
        AND subject = ANY(ARRAY(SELECT subject FROM names EXCEPT SELECT subject FROM begun))
    GROUP BY 1, 2
)
SELECT subject, place, views, visitors FROM these
UNION ALL
SELECT this.subject, -1, past.views, past.visitors
FROM (SELECT subject FROM these UNION SELECT subject FROM begun) AS this LEFT JOIN LATERAL (
    SELECT views, visitors FROM {table} past
    WHERE past.subject = this.subject AND past.hour < {since} ORDER BY past.hour DESC LIMIT 1
) AS past ON TRUE
UNION ALL
SELECT begun.subject, ends.place::int - 1, past.views, past.visitors
FROM begun, unnest(ARRAY[{ends}]) WITH ORDINALITY AS ends (hour, place), LATERAL (
    SELECT views, visitors FROM {table} past
    WHERE past.subject = begun.subject AND past.hour < ends.hour ORDER BY past.hour DESC LIMIT 1
) AS past
WHERE ends.hour > begun.first_hour
