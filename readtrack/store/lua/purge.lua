-- Removes the counts that a restored Redis holds from before a reset.
-- Guarantees: counts that began after the reset stay. Nothing is removed from a Redis that knows of the reset, or of a
-- flush that began after it.
-- KEYS: unsettled, reset, last flush, last full flush; keys of each subject: its total, its sketch, its hashes, others
-- ARGV: JSON: per subject {subject, names: those of its total and hashes in `unsettled`, first and last: numbers of
--       its keys, time of its reset (µs)}
-- Returns: number of subjects whose reset this Redis did not know of
local call = redis.call
local unsettled, resets = KEYS[1], KEYS[2]
local last = math.max(tonumber(call('GET', KEYS[3]) or 0), tonumber(call('GET', KEYS[4]) or 0))
local purged = 0

-- A counter that begins is marked with the time, until it is settled.
local function is_older(name, time)
  return tonumber(call('ZSCORE', unsettled, name) or 0) < time
end

local function purge(row)
  for index = 2, #row.names do
    if is_older(row.names[index], row.time) then
      call('UNLINK', KEYS[row.first + index])
      call('ZREM', unsettled, row.names[index])
    end
  end
  if is_older(row.subject, row.time) then
    call('UNLINK', KEYS[row.first], KEYS[row.first + 1], unpack(KEYS, row.first + 1 + #row.names, row.last))
    call('ZREM', unsettled, row.subject)
  end
end

for _, row in ipairs(cjson.decode(ARGV[1])) do
  if last <= row.time and tonumber(call('ZSCORE', resets, row.subject) or 0) < row.time then
    purge(row)
    purged = purged + 1
  end
end
return purged
