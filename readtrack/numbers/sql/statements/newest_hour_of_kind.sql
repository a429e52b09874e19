-- The newest hour of one kind of rows. Parameters: subject, kind.
SELECT MAX(hour) FROM {table} WHERE subject = %s AND kind = %s
