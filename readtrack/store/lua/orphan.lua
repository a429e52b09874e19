-- Notes subjects whose row is missing, and tells which were missing long enough.
-- KEYS: orphans. ARGV: life of a note before it counts (µs), ids. Returns: ids whose note is that old
local orphans, age = KEYS[1], tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ripe = {}
for index = 2, #ARGV do
  local noted = redis.call('ZSCORE', orphans, ARGV[index])
  if not noted then
    redis.call('ZADD', orphans, string.format('%.0f', now), ARGV[index])
  elseif now - noted >= age then
    ripe[#ripe + 1] = ARGV[index]
  end
end
return ripe
