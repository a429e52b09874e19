-- Reads hashes of counts, and which of them are unsettled, at one moment. A key of another type is as an empty one.
-- KEYS: unsettled, hashes. ARGV: name of each hash in `unsettled`
-- Returns: {} if no hash exists; else {fields and counts of each hash, marks}, where the mark of a settled hash is nil
if redis.call('EXISTS', unpack(KEYS, 2)) == 0 then return {} end
local found = {}
for index = 2, #KEYS do
  local counts = redis.pcall('HGETALL', KEYS[index])
  found[index - 1] = counts.err and {} or counts
end
local marks = redis.pcall('ZMSCORE', KEYS[1], unpack(ARGV))
return {found, not marks.err and marks or nil}
