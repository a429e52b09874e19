-- Included at the end of take_over_bitmap.lua and take_over_sequence.lua.
-- Takes: call; take_over(state, anonymous, user), which marks one category read for the user's number if that of an
--   anonymous reader has read it. It returns true if it has.
-- Marks categories read for a user that the same person has read before signing in.
-- Guarantees: what was published since the anonymous reader has read a category stays new, and the user loses nothing.
-- KEYS: readers, keys of read state that changed; state of each category. ARGV: number of the anonymous reader, user
-- Returns: number of categories that the anonymous reader has read; 0 for a user without a number
local readers, changed = KEYS[1], KEYS[2]
local anonymous, user = ARGV[1], call('HGET', readers, ARGV[2])
if not user then return 0 end

local count = 0
local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
for key = 3, #KEYS do
  if take_over(KEYS[key], anonymous, user) then
    call('ZADD', changed, now, KEYS[key])
    count = count + 1
  end
end
return count
