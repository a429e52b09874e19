-- Gives a Redis that lost its read state the numbers of readers that SQL has.
-- Guarantees: changes nothing in a Redis that has begun, or that somebody else restores. No number below the next one is
-- given again.
-- KEYS: when this Redis began to know publications, who restores it, next number, readers
-- ARGV: the id of the restoration, the next number at least; per reader: name, number
-- Returns: number of readers; -1 if nothing was changed
local call = redis.call
local next_number, readers = KEYS[3], KEYS[4]
local FIRST_NAME = 3

-- restoring.lua

if not is_restored_by(KEYS[1], KEYS[2], ARGV[1]) then return -1 end

local following = tonumber(ARGV[2])
for index = FIRST_NAME, #ARGV, 2 do
  call('HSET', readers, ARGV[index], ARGV[index + 1])
  following = math.max(following, ARGV[index + 1] + 1)
end
if following > tonumber(call('GET', next_number) or 0) then call('SET', next_number, following) end
return (#ARGV - 2) / 2
