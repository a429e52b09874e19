-- Counts hits that did not count.
-- KEYS: the hash of the hour, for each count. ARGV: lifetime (s); each reason and its count
-- Returns: number of counts
for index, key in ipairs(KEYS) do
  redis.call('HINCRBY', key, ARGV[2 * index], ARGV[2 * index + 1])
  redis.call('EXPIRE', key, ARGV[1])
end
return #KEYS
