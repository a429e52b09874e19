-- Marks categories read for every reader up to a number, by a bit for each.
-- Guarantees, KEYS, ARGV and Returns: as in fill.lua.
local call = redis.call
local readers = tonumber(ARGV[1]) + 1
local whole_bytes = math.floor(readers / 8)
local ones = string.rep('\255', whole_bytes)

local function fill(state)
  call('SETRANGE', state, 0, ones)
  for reader = whole_bytes * 8, readers - 1 do call('SETBIT', state, reader, 1) end
end

-- fill.lua
