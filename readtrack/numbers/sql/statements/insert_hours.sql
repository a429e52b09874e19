-- Parameters: subject and hour, three times.
{insert} {table} (subject, hour, views, visitors)
SELECT
    %s,
    %s,
    COALESCE((
        SELECT past.views FROM {table} past WHERE past.subject = %s AND past.hour < %s ORDER BY past.hour DESC LIMIT 1
    ), 0),
    COALESCE((
        SELECT past.visitors FROM {table} past WHERE past.subject = %s AND past.hour < %s ORDER BY past.hour DESC LIMIT 1
    ), 0)
{ignore}
