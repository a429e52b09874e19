-- Marks categories read for a user that the same person has read before signing in, by the bits of both.
-- Guarantees, KEYS, ARGV and Returns: as in take_over.lua. A state is a bitmap.
local call = redis.call

local function take_over(state, anonymous, user)
  if call('GETBIT', state, anonymous) == 0 then return false end
  call('SETBIT', state, user, 1)
  return true
end

-- take_over.lua
