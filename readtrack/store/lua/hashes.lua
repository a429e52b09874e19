-- Reads hashes of counts, and which of them lack SQL's base, at one moment.
-- KEYS: unsettled, hashes. ARGV: name of each hash in `unsettled`
-- Returns: {fields and counts of each hash}, or {fields and counts, marks} where a mark is nil for one with its base
local found = {}
for index = 2, #KEYS do
  found[index - 1] = redis.call('HGETALL', KEYS[index])
end
if redis.call('EXISTS', KEYS[1]) == 0 then return {found} end
return {found, redis.call('ZMSCORE', KEYS[1], unpack(ARGV))}
