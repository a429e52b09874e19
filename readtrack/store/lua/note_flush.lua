-- Notes the time of a flush, unless this Redis was rolled back since the caller read the last one.
-- Guarantees: the time never falls. It works while Redis's memory is full.
-- KEYS: last flush, last full flush. ARGV: last flush time the caller read (µs), new flush time (µs)
-- Returns: 1, or 0 if Redis was rolled back since
local key, known, time = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local last = math.max(tonumber(redis.call('GET', key) or 0), tonumber(redis.call('GET', KEYS[2]) or 0))
if last < known then return 0 end
if last < time then
  redis.call('DEL', key)  -- because a full Redis lets a script go on that has written
  redis.call('SET', key, ARGV[2])
end
return 1
