-- Counts the keys that exist. KEYS: any. Returns: their number
return redis.call('EXISTS', unpack(KEYS))
