-- Records the views of many hits, in their order.
-- Guarantees: those of record.lua, for each hit. Sent again, it counts none of them twice.
-- KEYS: those of record.lua, for each hit
-- ARGV: what all hits have in common, which is the first argument of record.lua; the other arguments of each hit
-- Returns: per hit what record.lua returns
local function record(KEYS, ARGV)
-- record.lua
end

local outcomes, key, position = {}, 0, 2
while position <= #ARGV do
  local keys, args = {}, {ARGV[1], ARGV[position]}
  local width, length = string.match(ARGV[position], '(%d+) (%d+)$')
  for index = 1, width do keys[index] = KEYS[key + index] end
  for index = 1, length do args[2 + index] = ARGV[position + index] end
  outcomes[#outcomes + 1] = record(keys, args)
  key, position = key + width, position + 1 + length
end
return outcomes
