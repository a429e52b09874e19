-- Reads strings. KEYS: strings. Returns: the content of each, nil for one that is missing
return redis.call('MGET', unpack(KEYS))
