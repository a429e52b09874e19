-- Reads where this Redis stands in the line of settlings.
-- KEYS: epoch. Returns: "current previous"
return redis.call('GET', KEYS[1]) or '0 0'
