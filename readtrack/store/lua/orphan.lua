-- Notes subjects that have no row in SQL, and finds those that had none long enough.
-- Guarantees: it works while Redis's memory is full.
-- KEYS: orphans. ARGV: age (µs) from which a subject counts as an orphan, subjects. Returns: subjects noted that long ago
local orphans, age = KEYS[1], tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ripe = {}
redis.call('ZREM', orphans, '')  -- there is none; but a full Redis lets a script go on that has written
for index = 2, #ARGV do
  local noted = redis.call('ZSCORE', orphans, ARGV[index])
  if not noted then
    redis.call('ZADD', orphans, string.format('%.0f', now), ARGV[index])
  elseif now - noted >= age then
    ripe[#ripe + 1] = ARGV[index]
  end
end
return ripe
