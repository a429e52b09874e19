-- Inserts missing rows of history with the counts of the row before. Parameters: views, subjects, hours, ends, limits.
INSERT INTO {table} (subject, hour, views, visitors)
SELECT new.subject, new.since, COALESCE(past.views, 0), COALESCE(past.visitors, 0)
FROM unnest(%s::bigint[], %s::varchar[], %s::integer[], %s::integer[], %s::bigint[])
    AS new(views, subject, since, until, below)
LEFT JOIN LATERAL (
    SELECT views, visitors FROM {table} WHERE subject = new.subject AND hour < new.since ORDER BY hour DESC LIMIT 1
) AS past ON true
ON CONFLICT DO NOTHING
