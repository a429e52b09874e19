-- Counts the unique visitors of many subjects. KEYS: hll of each. Returns: the count of each
local counts = {}
for index, hll in ipairs(KEYS) do
  counts[index] = redis.call('PFCOUNT', hll)
end
return counts
