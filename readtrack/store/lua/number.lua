-- Gives numbers to readers that are known by name, as mark_read.lua does.
-- KEYS: the next number, readers, other hashes of readers that share it. ARGV: highest number, names
-- Returns: the highest number that is given so far, -1 for none
local call = redis.call
local following, readers, highest = KEYS[1], KEYS[2], tonumber(ARGV[1])
local given = 0
for key = 2, #KEYS do given = given + call('HLEN', KEYS[key]) end
local number = math.max(given, tonumber(call('GET', following) or 0))
for index = 2, #ARGV do
  if number > highest then break end
  if call('HSETNX', readers, ARGV[index], number) == 1 then number = number + 1 end
end
call('SET', following, number)
return number - 1
