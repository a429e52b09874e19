-- As insert_hours.sql, for many rows. Parameters: subjects, hours.
{insert} {table} (subject, hour, views, visitors)
SELECT new.subject, new.hour, COALESCE(last.views, 0), COALESCE(last.visitors, 0)
FROM unnest(%s::text[], %s::bigint[]) AS new(subject, hour)
LEFT JOIN LATERAL (
    SELECT past.views, past.visitors
    FROM {table} past WHERE past.subject = new.subject AND past.hour < new.hour ORDER BY past.hour DESC LIMIT 1
) AS last ON TRUE
{ignore}
