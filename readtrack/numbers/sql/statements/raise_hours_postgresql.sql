-- As raise_hours.sql, for many ranges, none of which has an hour of another.
-- Parameters: views, subjects, hours, ends, limits.
UPDATE {table} AS row
SET views = row.views + new.views
FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[])
    AS new(views, subject, hour, until, most)
WHERE row.subject = new.subject AND row.hour >= new.hour AND row.hour < new.until AND row.views < new.most
