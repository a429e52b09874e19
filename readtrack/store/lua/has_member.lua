-- Whether a set has a member. KEYS: set. ARGV: member. Returns: 1 or 0
return redis.call('SISMEMBER', KEYS[1], ARGV[1])
