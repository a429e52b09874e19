-- Computes a list of what is trending in one go: for windows and half-lives that not everybody asks for.
-- KEYS: list, bucket of each minute. ARGV: life of the list s, weight of each minute. Returns: number of subjects on the list
local list, life = KEYS[1], ARGV[1]
local arguments = {list, #KEYS - 1}
for index = 2, #KEYS do arguments[#arguments + 1] = KEYS[index] end
arguments[#arguments + 1] = 'WEIGHTS'
for index = 2, #ARGV do arguments[#arguments + 1] = ARGV[index] end
redis.call('ZUNIONSTORE', unpack(arguments))
redis.call('ZREMRANGEBYSCORE', list, '-inf', 0)
redis.call('ZADD', list, -1, '') -- an empty list is one that was computed, too
redis.call('EXPIRE', list, life)
return redis.call('ZCARD', list) - 1
