-- Removes keys that depend on the numbers of readers, from a Redis that lost its read state.
-- Guarantees: changes nothing in a Redis that has begun.
-- KEYS: when this Redis began to know publications, any. ARGV: none. Returns: number of keys removed
local call = redis.call
if call('EXISTS', KEYS[1]) == 1 then return 0 end

local removed = 0
for key = 2, #KEYS do removed = removed + call('UNLINK', KEYS[key]) end
return removed
