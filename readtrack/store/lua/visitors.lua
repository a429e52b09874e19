-- Counts the unique visitors of many subjects.
-- KEYS: HyperLogLog, set, bitmap or counter of each. ARGV: the command that counts each; nothing if all are HyperLogLogs
-- Returns: the count of each
local counts = {}
local is_empty = redis.call('EXISTS', unpack(KEYS)) == 0
for index, key in ipairs(KEYS) do
  counts[index] = is_empty and 0 or tonumber(redis.call(ARGV[index] or 'PFCOUNT', key) or 0)
end
return counts
