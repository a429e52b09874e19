-- Notes the number of partitions, unless there is one. KEYS: where. ARGV: number of partitions. Returns: the noted one
-- Guarantees: it works while Redis's memory is full.
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('DEL', KEYS[1])  -- it does nothing; but a full Redis lets a script go on that has written
  redis.call('SET', KEYS[1], ARGV[1])
end
return redis.call('GET', KEYS[1])
