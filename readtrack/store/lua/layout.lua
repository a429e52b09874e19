-- Returns the number of partitions that flushes know; at first this one. KEYS: that number. ARGV: number of partitions
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
