-- Gives numbers to readers that are known by name.
-- KEYS: readers. ARGV: highest number, names. Returns: the highest number that is given so far, -1 for none
local call = redis.call
local highest = tonumber(ARGV[1])
for index = 2, #ARGV do
  local next = call('HLEN', KEYS[1])
  if next > highest then break end
  call('HSETNX', KEYS[1], ARGV[index], next)
end
return call('HLEN', KEYS[1]) - 1
