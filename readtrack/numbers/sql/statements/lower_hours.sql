-- Parameters: views, views, subject, hour, end.
UPDATE {table} SET views = CASE WHEN views > %s THEN views - %s ELSE 0 END
WHERE subject = %s AND hour >= %s AND hour < %s
