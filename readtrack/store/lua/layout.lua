-- Notes the number of partitions, unless there is one. KEYS: where. ARGV: number of partitions. Returns: the noted one
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
