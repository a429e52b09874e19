-- Computes a trending list of fewer minutes than an hour, which few ask for, in one go.
-- KEYS: list, bucket of each minute. ARGV: lifetime of the list (s). Returns: number of subjects on the list
local list, lifetime = KEYS[1], ARGV[1]
redis.call('ZUNIONSTORE', list, #KEYS - 1, unpack(KEYS, 2))
redis.call('ZREMRANGEBYSCORE', list, '-inf', 0)
redis.call('ZADD', list, -1, '') -- so that a list of nothing exists, too
redis.call('EXPIRE', list, lifetime)
return redis.call('ZCARD', list) - 1
