-- Removes keys that depend on the numbers of readers, from a Redis that lost its read state.
-- Guarantees: changes nothing in a Redis that has begun, or that somebody else restores.
-- KEYS: when this Redis began to know publications, who restores it, any. ARGV: the id of the restoration
-- Returns: number of keys removed; -1 if nothing was changed
local call = redis.call

-- restoring.lua

if not is_restored_by(KEYS[1], KEYS[2], ARGV[1]) then return -1 end

local removed = 0
for key = 3, #KEYS do removed = removed + call('UNLINK', KEYS[key]) end
return removed
