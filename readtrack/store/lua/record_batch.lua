-- Records the views of many hits, in their order.
-- Guarantees: those of record.lua, for each hit. Sent again, it counts none of them twice.
-- KEYS: those of record.lua, for each hit
-- ARGV: the arguments that all hits have in common, which come first in record.lua;
--       per hit the number of its keys, the number of its other arguments, and those
-- Returns: per hit what record.lua returns
local function record(KEYS, ARGV)
-- record.lua
end

local COMMON = 7
local outcomes, key, position = {}, 0, COMMON + 1
while position < #ARGV do
  local keys, args, width, length = {}, {}, tonumber(ARGV[position]), tonumber(ARGV[position + 1])
  for index = 1, width do keys[index] = KEYS[key + index] end
  for index = 1, COMMON do args[index] = ARGV[index] end
  for index = 1, length do args[COMMON + index] = ARGV[position + 1 + index] end
  outcomes[#outcomes + 1] = record(keys, args)
  key, position = key + width, position + 2 + length
end
return outcomes
