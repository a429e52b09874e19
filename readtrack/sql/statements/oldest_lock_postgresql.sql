SELECT pid, EXTRACT(EPOCH FROM now() - xact_start)::integer, query
FROM pg_stat_activity
WHERE
    pid IN (
        SELECT pid
        FROM pg_locks
        WHERE granted AND mode IN ('RowShareLock', 'RowExclusiveLock') AND relation = %s::regclass
    )
    AND pid <> pg_backend_pid()
ORDER BY xact_start
LIMIT 1
