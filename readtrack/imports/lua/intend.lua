-- Announces the next batch of an import, so that a Redis that has lost its data since can be told from one that has not.
-- Guarantees: refuses if the import has gone further than the caller knows.
-- KEYS: import. ARGV: position before the batch, position after it, TTL (s). Returns: 1, or 0 if refused
local import, before, after = KEYS[1], ARGV[1], ARGV[2]
local done = redis.call('HGET', import, 'done')
if done and tonumber(done) > tonumber(before) then return 0 end
redis.call('HSET', import, 'begun', after, 'done', before)
redis.call('EXPIRE', import, ARGV[3])
return 1
