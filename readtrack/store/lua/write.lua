-- Writes a key that expires. Guarantees: the key is never without its expiry.
-- KEYS: key. ARGV: lifetime (s), the command that writes, its arguments behind the key. Returns: what that command does
local answer = redis.call(ARGV[2], KEYS[1], unpack(ARGV, 3))
redis.call('EXPIRE', KEYS[1], ARGV[1])
return answer
