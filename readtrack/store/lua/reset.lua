-- Sets subjects to zero, and remembers it for who still carries an older count.
-- KEYS: unsettled, reset; per subject: total, sketch, hashes, others
-- ARGV: keys per subject, hashes per subject; per subject: id, names of hashes in `unsettled`. Returns: the time of it in us
local width, hashes = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
local arg = 3
for key = 3, #KEYS, width do
  redis.call('ZADD', KEYS[2], now, ARGV[arg])
  for index = 0, width - 1 do redis.call('UNLINK', KEYS[key + index]) end
  for index = 0, hashes do redis.call('ZREM', KEYS[1], ARGV[arg + index]) end
  arg = arg + hashes + 1
end
return now
