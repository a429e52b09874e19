-- Marks categories read for a user that the same person has read before signing in, by the higher of both numbers.
-- Guarantees, KEYS, ARGV and Returns: as in take_over.lua. A state is a string of 4-byte numbers: of publications, and
-- of each reader.
local call = redis.call

local function seen_by(state, reader)
  return call('BITFIELD', state, 'GET', 'u32', '#' .. reader + 1)[1]
end

local function take_over(state, anonymous, user)
  local seen = seen_by(state, anonymous)
  if seen == 0 then return false end
  if seen > seen_by(state, user) then call('BITFIELD', state, 'SET', 'u32', '#' .. user + 1, seen) end
  return true
end

-- take_over.lua
