-- Tells if something is new to one reader in many categories, by the reader's bit.
-- Guarantees, KEYS, ARGV and Returns: as in unread.lua. The numbers are 0 and 1.
local call = redis.call

local function count_new(state, reader)
  if not reader then return 1 end
  return 1 - call('GETBIT', state, reader)
end

-- unread.lua
