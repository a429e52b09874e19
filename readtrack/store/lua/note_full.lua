-- Notes the time of a full flush, and deletes old notes of orphans.
-- Guarantees: it works while Redis's memory is full, because it begins with a command that takes none.
-- KEYS: last full flush, orphans. ARGV: time (µs), time of the newest note that is deleted (µs). Returns: 1
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[2])
redis.call('SET', KEYS[1], ARGV[1])
return 1
