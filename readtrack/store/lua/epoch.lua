-- Reads the epoch of this Redis. KEYS: epoch. Returns: "current previous"
return redis.call('GET', KEYS[1]) or '0 0'
