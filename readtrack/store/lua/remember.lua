-- Leaves the mark of a flush, unless this Redis has gone back to before what the flush knew of it.
-- Guarantees: the mark never falls.
-- KEYS: last flush. ARGV: the mark that the flush knew us, its own us. Returns: 1, or 0 for a Redis that went back
local key, known, time = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local last = tonumber(redis.call('GET', key) or 0)
if last < known then return 0 end
if last < time then redis.call('SET', key, ARGV[2]) end
return 1
