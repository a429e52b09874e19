-- Begins to give a Redis that lost its read state what SQL has. Whoever began before has to stop.
-- Guarantees: changes nothing in a Redis that has begun.
-- KEYS: when this Redis began to know publications, who restores it. ARGV: the id of the restoration, its lifetime (s)
-- Returns: 1; 0 for a Redis that has begun
local call = redis.call
if call('EXISTS', KEYS[1]) == 1 then return 0 end

call('SET', KEYS[2], ARGV[1], 'EX', ARGV[2])
return 1
