SELECT pid, EXTRACT(EPOCH FROM now() - xact_start)::integer, query
FROM pg_stat_activity
WHERE
    pid IN (
        SELECT pid
        FROM pg_locks
        WHERE
            granted AND relation = %s::regclass
            -- Of rows, or of the whole table.
            AND mode IN (
                'RowShareLock', 'RowExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                'AccessExclusiveLock'
            )
    )
    AND pid <> pg_backend_pid()
ORDER BY xact_start
LIMIT 1
