-- Counts the unique visitors that some sketches have together. KEYS: hlls. Returns: the count
return redis.call('PFCOUNT', unpack(KEYS))
