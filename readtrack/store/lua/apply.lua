-- Adds one part of an import to the counts.
-- Guarantees: a part is added once, whoever sends it twice, for its position moves in the same step; and only
-- to the Redis that it was announced to. What is trending and how long keys live stays as it is.
-- KEYS: import, unbased, total of each subject, hours
-- ARGV: position before the part, position after it, number of subjects, id and views of each,
--       views of each hour and when it ends (s since 1970)
-- Returns: 1 applied, now or before; 0 refused
local call = redis.call
local import, unbased = KEYS[1], KEYS[2]
local before, after, subjects = ARGV[1], ARGV[2], tonumber(ARGV[3])
local state = call('HMGET', import, 'begun', 'done')
if state[1] ~= after then return 0 end
if state[2] == after then return 1 end
if state[2] ~= before then return 0 end

local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
for subject = 1, subjects do
  local id, views = ARGV[2 + 2 * subject], ARGV[3 + 2 * subject]
  -- A total that was missing lacks what SQL knows: the flush settles that.
  if call('INCRBY', KEYS[2 + subject], views) == tonumber(views) then call('ZADD', unbased, 'NX', now, id) end
end
local first = 2 + subjects
for hour = 1, #KEYS - first do
  local argument = 2 + 2 * (subjects + hour)
  local views = ARGV[argument]
  if call('INCRBY', KEYS[first + hour], views) == tonumber(views) then
    call('EXPIREAT', KEYS[first + hour], ARGV[argument + 1])
  end
end
call('HSET', import, 'done', after)
return 1
