-- Marks categories read for every reader up to a number, by the number of publications so far for each.
-- Guarantees, KEYS, ARGV and Returns: as in fill.lua.
local call = redis.call
local readers = tonumber(ARGV[1]) + 1

local function fill(state)
  local published = call('BITFIELD', state, 'GET', 'u32', 0)[1]
  -- The first four bytes are the number of publications itself.
  call('SETRANGE', state, 4, string.rep(struct.pack('>I4', published + 1), readers))
end

-- fill.lua
