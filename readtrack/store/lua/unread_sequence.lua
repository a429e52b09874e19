-- Counts what is new to one reader in many categories, by the number of publications when the reader came.
-- Guarantees, KEYS, ARGV and Returns: as in unread.lua.
local call = redis.call

local function count_new(state, reader)
  local published = call('BITFIELD', state, 'GET', 'u32', 0)[1]
  local seen = 0
  if reader then seen = call('BITFIELD', state, 'GET', 'u32', '#' .. reader + 1)[1] end
  if seen == 0 then return math.max(published, 1) end
  return published + 1 - seen
end

-- unread.lua
