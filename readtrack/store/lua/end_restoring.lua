-- Lets a Redis begin that got its read state back from SQL.
-- Guarantees: a Redis that was replaced by a snapshot meanwhile, so that it lacks what was restored, does not begin.
-- KEYS: when this Redis began to know publications, who restores it. ARGV: the id of the restoration, the time (µs)
-- Returns: 1; 0 if it is restored by somebody else, or has begun
local call = redis.call
if call('GET', KEYS[2]) ~= ARGV[1] then return 0 end

call('UNLINK', KEYS[2])
return call('SET', KEYS[1], ARGV[2], 'NX') and 1 or 0
