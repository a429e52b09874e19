-- Announces the next part of an import, so that a Redis that lost its data since is told from one that did not.
-- Guarantees: refused where this import has been applied further than the caller knows.
-- KEYS: import. ARGV: position before the part, position after it. Returns: 1, or 0 when refused
local import, before, after = KEYS[1], ARGV[1], ARGV[2]
local done = redis.call('HGET', import, 'done')
if done and tonumber(done) > tonumber(before) then return 0 end
redis.call('HSET', import, 'begun', after, 'done', before)
return 1
