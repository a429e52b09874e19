-- Leaves the last row of each subject in a range of hours. Parameters: the first hour and the end, twice.
DELETE FROM {table}
WHERE
    hour >= %s AND hour < %s
    AND EXISTS (
        -- A table of groups, because MySQL's subqueries may not read the very table that a statement changes.
        SELECT 1
        FROM (SELECT subject, MAX(hour) AS hour FROM {table} WHERE hour >= %s AND hour < %s GROUP BY subject) AS newest
        WHERE newest.subject = {table}.subject AND newest.hour > {table}.hour
    )
