-- Notes the number of partitions, unless there is one, and the layout, unless there is a newer one.
-- KEYS: where. ARGV: number of partitions, layout. Returns: the noted number, the noted layout
-- Guarantees: it works while Redis's memory is full.
local place, partitions, layout = KEYS[1], ARGV[1], ARGV[2]
redis.call('HDEL', place, '')  -- it does nothing; but a full Redis lets a script go on that has written
redis.call('HSETNX', place, 'partitions', partitions)
if tonumber(redis.call('HGET', place, 'layout') or 0) < tonumber(layout) then
  redis.call('HSET', place, 'layout', layout)
end
return redis.call('HMGET', place, 'partitions', 'layout')
