-- Gives numbers to readers that are known by name, as mark_read.lua does.
-- Guarantees: no number is given twice, and a reader who has one keeps it. While the read state of this Redis is not
-- restored, no number is given, because SQL may know that it belongs to another reader.
-- KEYS: when this Redis began to know publications, readers that SQL does not know yet, the next number, readers, other hashes of readers that share it
-- ARGV: highest number, names
-- Returns: the highest number that is given so far, -1 for none and for a Redis that has not begun
local call = redis.call
local began_key, new_readers, next_number, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local highest = tonumber(ARGV[1])
local FIRST_HASH, FIRST_NAME = 4, 2
if call('EXISTS', began_key) == 0 then return -1 end

local given = 0
for key = FIRST_HASH, #KEYS do given = given + call('HLEN', KEYS[key]) end
-- The next number outlives an eviction of the readers.
local number = math.max(given, tonumber(call('GET', next_number) or 0))
for index = FIRST_NAME, #ARGV do
  if number > highest then break end
  if call('HSETNX', readers, ARGV[index], number) == 1 then
    call('ZADD', new_readers, number, ARGV[index])
    number = number + 1
  end
end
call('SET', next_number, number)
return number - 1
