-- Records the views of many hits, in their order.
-- Guarantees: those of record.lua, for each hit. Sent again, it counts none of them twice.
-- KEYS: those of record.lua, for each hit
-- ARGV: per hit the number of its keys, the number of its arguments, and its arguments
-- Returns: per hit what record.lua returns
local function record(KEYS, ARGV)
-- record.lua
end

local outcomes, key, position = {}, 0, 1
while position < #ARGV do
  local keys, args, width, length = {}, {}, tonumber(ARGV[position]), tonumber(ARGV[position + 1])
  for index = 1, width do keys[index] = KEYS[key + index] end
  for index = 1, length do args[index] = ARGV[position + 1 + index] end
  outcomes[#outcomes + 1] = record(keys, args)
  key, position = key + width, position + 2 + length
end
return outcomes
