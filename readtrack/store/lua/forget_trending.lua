-- Takes subjects out of the last hour: out of its list, and out of what each minute has.
-- Guarantees: the list stays the sum of what it took in, because all keys lose the subjects together.
-- KEYS: any sorted sets; a key of another type is as a missing one. ARGV: subjects
-- Returns: how many members were removed
local removed = 0
for _, key in ipairs(KEYS) do
  local members = redis.pcall('ZCARD', key)
  if type(members) == 'number' and members > 0 then
    for first = 1, #ARGV, 1000 do
      removed = removed + redis.call('ZREM', key, unpack(ARGV, first, math.min(first + 999, #ARGV)))
    end
  end
end
return removed
