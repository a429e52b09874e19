-- As steps.sql, but of the subjects that {found_by} finds, only the last row of each asked place is read, by the index.
-- Parameters: the array of subjects, best first.
WITH names AS (
    SELECT unnest(%s::text[]) AS subject
),
foremost AS (
    SELECT subject FROM names LIMIT 400
),
found AS (
    {found_by}
    EXCEPT
    -- Their last row of a place may not be the highest.
    SELECT unnest(ARRAY[subject, 'reads:' || subject]) FROM {resets}
),
begun AS MATERIALIZED (
    SELECT subject, (SELECT past.hour FROM {table} past
        WHERE past.subject = found.subject AND past.hour >= {since} AND past.hour < {until}
        ORDER BY past.hour LIMIT 1) AS first_hour
    FROM found
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
SELECT begun.subject, ends.place, past.views, past.visitors
FROM begun, unnest(ARRAY[{ends}], ARRAY[{places}]) AS ends (hour, place), LATERAL (
    SELECT views, visitors FROM {table} past
    WHERE past.subject = begun.subject AND past.hour < ends.hour ORDER BY past.hour DESC LIMIT 1
) AS past
WHERE ends.hour > begun.first_hour
