-- Marks categories read for one reader, by the reader's bit.
-- Guarantees, KEYS, ARGV and Returns: as in mark_read.lua. A state is a bitmap.
local call = redis.call

local function mark(state, reader)
  return call('SETBIT', state, reader, 1) == 0
end

-- mark_read.lua
