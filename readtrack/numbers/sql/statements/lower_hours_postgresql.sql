-- As lower_hours.sql, for many ranges, none of which has an hour of another. Parameters: views, subjects, hours, ends.
UPDATE {table} AS row
SET views = GREATEST(row.views - lost.views, 0)
FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::bigint[]) AS lost(views, subject, hour, until)
WHERE row.subject = lost.subject AND row.hour >= lost.hour AND row.hour < lost.until
