-- Counts hits that did not count.
-- KEYS: the hash of the hour, for each count
-- ARGV: lifetime (s), number of fields that take no further robot, what a robot's name begins with, the field for further
--       robots; each reason or robot and its count
-- Returns: number of counts
local call, most, named, other = redis.call, tonumber(ARGV[2]), ARGV[3], ARGV[4]
for index, key in ipairs(KEYS) do
  local field = ARGV[3 + 2 * index]
  local is_robot = string.sub(field, 1, #named) == named
  if is_robot and call('HLEN', key) >= most and call('HEXISTS', key, field) == 0 then field = other end
  call('HINCRBY', key, field, ARGV[4 + 2 * index])
  call('EXPIRE', key, ARGV[1])
end
return #KEYS
