-- Gives a Redis that lost its read state the numbers of readers that SQL has.
-- Guarantees: changes nothing in a Redis that has begun. No number below the next one is given again.
-- KEYS: when this Redis began to know publications, next number, readers
-- ARGV: the next number at least; per reader: name, number
-- Returns: number of readers; -1 for a Redis that has begun
local call = redis.call
local next_number, readers = KEYS[2], KEYS[3]
local FIRST_NAME = 2
if call('EXISTS', KEYS[1]) == 1 then return -1 end

local following = tonumber(ARGV[1])
for index = FIRST_NAME, #ARGV, 2 do
  call('HSET', readers, ARGV[index], ARGV[index + 1])
  following = math.max(following, ARGV[index + 1] + 1)
end
if following > tonumber(call('GET', next_number) or 0) then call('SET', next_number, following) end
return (#ARGV - 1) / 2
