-- Releases a lock that the caller still holds. KEYS: lock. ARGV: the holder's word. Returns: 1, or 0 if it was lost
local lock, word = KEYS[1], ARGV[1]
return redis.call('GET', lock) == word and redis.call('UNLINK', lock) or 0
