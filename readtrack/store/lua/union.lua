-- Counts the different members of some sets, without writing anything.
-- KEYS: sets. ARGV: number of members to look at, at most. Returns: the count; -1 if there may be more
local limit = tonumber(ARGV[1])
local members = 0
for _, key in ipairs(KEYS) do
  members = members + redis.call('SCARD', key)
end
if members > limit then return -1 end
return #redis.call('SUNION', unpack(KEYS))
