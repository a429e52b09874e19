-- Marks categories read for one reader, by the number of publications so far.
-- Guarantees, KEYS, ARGV and Returns: as in mark_read.lua. A state is a string of 4-byte numbers: of publications, and
-- of each reader.
local call = redis.call

local function mark(state, reader)
  local published = call('BITFIELD', state, 'GET', 'u32', 0)[1]
  local seen = call('BITFIELD', state, 'SET', 'u32', '#' .. reader + 1, published + 1)[1]
  return seen ~= published + 1
end

-- mark_read.lua
