-- Parameters: subject, views, visitors, subject. Hour 0 is the baseline.
{insert} {table} (subject, hour, views, visitors)
SELECT %s, 0, %s, %s
FROM (SELECT 1) AS one
WHERE NOT EXISTS (SELECT 1 FROM {table} past WHERE past.subject = %s)
{ignore}
