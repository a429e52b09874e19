-- Removes all keys of subjects: of those whose row is gone, which it notes; of idle ones only if SQL stores exactly what
-- they hold.
-- Guarantees: an idle subject keeps all its keys if its total changed since it was stored, or is unsettled; and while its
-- reset is noted, because a flush lowers the row of a reset subject to its total, and a missing one is 0.
-- KEYS: unsettled, reset, purged, orphans; keys of each subject: its total, its sketch, its hashes, others
-- ARGV: JSON: per subject {subject, names: those of its total and hashes in `unsettled`, first and last: numbers of
--       its keys, stored: what SQL stores of an idle one, {views, sums: sum of the counts of each hash}}; how long a note
--       is kept (s)
-- Returns: number of subjects removed; our time (µs)
local call = redis.call
local unsettled, resets, purged, orphans = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local note_life = ARGV[2]
local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
local removed = 0

local function is_stored(row)
  if call('GET', KEYS[row.first]) ~= row.stored.views then return false end
  if call('ZSCORE', resets, row.subject) then return false end
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

-- Tells purge.lua that this Redis knows that the row is gone.
local function note(subject)
  call('ZREMRANGEBYSCORE', purged, '-inf', now - note_life * 1000000)
  call('ZADD', purged, now, subject)
  call('EXPIRE', purged, note_life)
end

for _, row in ipairs(cjson.decode(ARGV[1])) do
  if not row.stored or is_stored(row) then
    call('UNLINK', unpack(KEYS, row.first, row.last))
    call('ZREM', unsettled, unpack(row.names))
    call('ZREM', orphans, row.subject)
    removed = removed + 1
    if not row.stored then
      call('ZREM', resets, row.subject)
      note(row.subject)
    end
  end
end
return {removed, now}
