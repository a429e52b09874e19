-- Adds visitors to the sketches or sets of many subjects. Doing so again changes nothing.
-- KEYS: sketch or set of each. ARGV: command and number of visitors of each, then all of them in that order
-- Returns: number of subjects
local first = 2 * #KEYS + 1
for index, unique in ipairs(KEYS) do
  local last = first + ARGV[2 * index] - 1
  redis.call(ARGV[2 * index - 1], unique, unpack(ARGV, first, last))
  first = last + 1
end
return #KEYS
