-- Adds views to rows of history below a limit. Parameters: views, subjects, hours, ends, limits, subjects.
UPDATE {table} AS row SET views = row.views + new.views
FROM unnest(%s::bigint[], %s::varchar[], %s::integer[], %s::integer[], %s::bigint[])
    AS new(views, subject, since, until, below)
WHERE
    row.subject = new.subject AND row.hour >= new.since AND row.hour < new.until AND row.views < new.below
    -- Without a second condition on the subject a large table is read as a whole.
    AND row.subject = ANY(%s::varchar[])
