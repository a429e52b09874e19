-- Counts the unique visitors of many subjects. KEYS: hll of each. Returns: the count of each
local counts = {}
local is_empty = redis.call('EXISTS', unpack(KEYS)) == 0
for index, hll in ipairs(KEYS) do
  counts[index] = is_empty and 0 or redis.call('PFCOUNT', hll)
end
return counts
