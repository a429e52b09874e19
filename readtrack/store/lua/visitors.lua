-- Counts the unique visitors of many subjects.
-- KEYS: HyperLogLog, set, bitmap or counter of each; unless all are HyperLogLogs, then the visitors that Redis lost of each
-- ARGV: the command that counts each; nothing if all are HyperLogLogs
-- Returns: the count of each; 0 for a key of another type
local counts = {}
local is_empty = redis.call('EXISTS', unpack(KEYS)) == 0
for index = 1, #ARGV > 0 and #ARGV or #KEYS do
  local command, earlier = ARGV[index] or 'PFCOUNT', 0
  counts[index] = is_empty and 0 or tonumber(redis.pcall(command, KEYS[index])) or 0
  if not is_empty and command ~= 'PFCOUNT' then earlier = redis.call('GET', KEYS[#ARGV + index]) or 0 end
  counts[index] = counts[index] + tonumber(earlier)
end
return counts
