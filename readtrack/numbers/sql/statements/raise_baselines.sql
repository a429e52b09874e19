-- The last row before an hour becomes the baseline (hour 0). Parameters: the hour, twice.
INSERT INTO {table} (subject, hour, views, visitors)
SELECT subject, 0, views, visitors
FROM {table} AS old
WHERE
    hour > 0 AND hour < %s
    AND NOT EXISTS (
        SELECT 1 FROM {table} AS later WHERE later.subject = old.subject AND later.hour > old.hour AND later.hour < %s
    )
{replace}
