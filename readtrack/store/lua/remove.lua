-- Removes all keys of subjects; of idle ones only if SQL stores exactly what they hold.
-- Guarantees: an idle subject whose total changed since it was stored, or is unsettled, keeps all its keys.
-- KEYS: unsettled, orphans; keys of each subject: its total, its sketch, its hashes, others
-- ARGV: JSON: per subject {subject, names: those of its total and hashes in `unsettled`, first and last: numbers of
--       its keys, stored: what SQL stores of an idle one, {views, sums: sum of the counts of each hash}}
-- Returns: number of subjects removed
local call = redis.call
local unsettled, orphans = KEYS[1], KEYS[2]
local removed = 0

local function is_stored(row)
  if call('GET', KEYS[row.first]) ~= row.stored.views then return false end
  for _, name in ipairs(row.names) do
    if call('ZSCORE', unsettled, name) then return false end
  end
  for index, stored in ipairs(row.stored.sums) do
    local sum = 0
    for _, count in ipairs(call('HVALS', KEYS[row.first + 1 + index])) do sum = sum + count end
    if sum ~= stored then return false end
  end
  return true
end

for _, row in ipairs(cjson.decode(ARGV[1])) do
  if not row.stored or is_stored(row) then
    call('UNLINK', unpack(KEYS, row.first, row.last))
    call('ZREM', unsettled, unpack(row.names))
    call('ZREM', orphans, row.subject)
    removed = removed + 1
  end
end
return removed
