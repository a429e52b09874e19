-- Gives a lock back, if it is still one's own. KEYS: lock. ARGV: the holder's word. Returns: 1, or 0 where it was lost
local lock, word = KEYS[1], ARGV[1]
return redis.call('GET', lock) == word and redis.call('UNLINK', lock) or 0
