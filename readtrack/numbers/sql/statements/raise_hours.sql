-- Parameters: views, subject, hour, end, limit.
UPDATE {table} SET views = views + %s WHERE subject = %s AND hour >= %s AND hour < %s AND views < %s
