-- Partitions that a killed process detached and did not drop. Parameters: pattern of their names, the table.
SELECT relname
FROM pg_class
WHERE
    relname ~ %s AND relkind = 'r' AND NOT relispartition
    AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = %s::regclass)
