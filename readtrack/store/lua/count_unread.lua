-- Counts what is new to one reader in many categories.
-- KEYS: counters of each category[, readers, if the reader is given by name]. ARGV: reader, number of categories
-- Returns: the number for each category; at least 1 if the reader has never opened it
local reader, count = ARGV[1], tonumber(ARGV[2])
local counts = {}
if #KEYS > count then reader = redis.call('HGET', KEYS[#KEYS], reader) end
for index = 1, count do
  local published = redis.call('BITFIELD', KEYS[index], 'GET', 'u32', 0)[1]
  local seen = reader and redis.call('BITFIELD', KEYS[index], 'GET', 'u32', '#' .. reader + 1)[1] or 0
  counts[index] = seen > 0 and published + 1 - seen or math.max(published, 1)
end
return counts
