-- Adds visitors to the sketches of many subjects. Doing so again changes nothing.
-- KEYS: hll of each. ARGV: number of visitors of each, then all of them in that order. Returns: number of subjects
local first = #KEYS + 1
for index, hll in ipairs(KEYS) do
  local last = first + ARGV[index] - 1
  redis.call('PFADD', hll, unpack(ARGV, first, last))
  first = last + 1
end
return #KEYS
