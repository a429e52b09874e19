-- Gives a day a random key if it has none, and reads it with the key of the day before.
-- KEYS: key of the day, key of the day before. ARGV: random key, lifetime (s). Returns: both, nil for one that is missing
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2])
return redis.call('MGET', KEYS[1], KEYS[2])
