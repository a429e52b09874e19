-- MySQL knows neither the table nor, between two statements, the last one.
SELECT trx_mysql_thread_id, TIMESTAMPDIFF(SECOND, trx_started, NOW()), COALESCE(trx_query, '')
FROM information_schema.innodb_trx
WHERE trx_rows_locked > 0 AND %s <> '' AND trx_mysql_thread_id <> CONNECTION_ID()
ORDER BY trx_started
LIMIT 1
