-- Reads hashes of counts, and which of them are unsettled, at one moment.
-- KEYS: unsettled, hashes. ARGV: name of each hash in `unsettled`
-- Returns: {} if no hash exists; else {fields and counts of each hash, marks}, where the mark of a settled hash is nil
if redis.call('EXISTS', unpack(KEYS, 2)) == 0 then return {} end
local found = {}
for index = 2, #KEYS do
  found[index - 1] = redis.call('HGETALL', KEYS[index])
end
return {found, redis.call('ZMSCORE', KEYS[1], unpack(ARGV))}
