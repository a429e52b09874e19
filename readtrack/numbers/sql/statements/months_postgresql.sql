-- The tables that a table is divided into, and their bounds. Parameters: the table.
SELECT relname, pg_get_expr(relpartbound, oid), inhdetachpending
FROM pg_inherits JOIN pg_class ON oid = inhrelid
WHERE inhparent = %s::regclass AND relispartition
