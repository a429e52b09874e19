-- Counts the different members of some sets, without writing anything.
-- KEYS: sets. ARGV: number of members to look at, at most; 1 to return the members. Returns: the count; -1 if there may be more
local limit, wants_members = tonumber(ARGV[1]), ARGV[2] == '1'
local members = 0
for _, key in ipairs(KEYS) do
  members = members + redis.call('SCARD', key)
end
if members > limit then return -1 end
local found = redis.call('SUNION', unpack(KEYS))
return wants_members and found or #found
