-- Counts hits that did not count.
-- KEYS: the hash of each hour. ARGV: lifetime (s); per hour: number of reasons, then each reason and its count
-- Returns: number of hours
local argument = 2
for _, key in ipairs(KEYS) do
  local last = argument + 2 * ARGV[argument]
  for index = argument + 1, last, 2 do
    redis.call('HINCRBY', key, ARGV[index], ARGV[index + 1])
  end
  redis.call('EXPIRE', key, ARGV[1])
  argument = last + 1
end
return #KEYS
