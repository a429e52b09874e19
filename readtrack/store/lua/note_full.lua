-- Notes the time of a full flush, and deletes old notes of orphans.
-- Guarantees: it works while Redis's memory is full, because it begins with a command that takes none. A Redis that was
-- rolled back since the flush began gets no note, so that the next flush sees it.
-- KEYS: last flush, last full flush, orphans. ARGV: time (µs), time of the newest note that is deleted (µs). Returns: 1,
--       or 0 if Redis was rolled back
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', ARGV[2])
if tonumber(redis.call('GET', KEYS[1]) or 0) < tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[2], ARGV[1])
return 1
