-- Removes the counts that Redis holds from before a reset, or of a row that is deleted, because it was restored or gone.
-- Guarantees: counts that began after that time stay. Nothing is removed from a Redis that knows of it, or of a flush
-- that began after it. To purge again removes nothing.
-- KEYS: unsettled, reset, purged, last flush, last full flush; keys of each subject: its total, its sketch, its hashes,
--       others
-- ARGV: JSON: per subject {subject, names: those of its total and hashes in `unsettled`, first and last: numbers of
--       its keys, time of its reset or deletion (µs)}; how long a note is kept (s)
-- Returns: number of subjects of which this Redis did not know that
local call = redis.call
local unsettled, resets, purged = KEYS[1], KEYS[2], KEYS[3]
local last = math.max(tonumber(call('GET', KEYS[4]) or 0), tonumber(call('GET', KEYS[5]) or 0))
local number_of_purged = 0

local function noted(notes, subject)
  return tonumber(call('ZSCORE', notes, subject) or 0)
end

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
  local known = math.max(noted(resets, row.subject), noted(purged, row.subject))
  if last <= row.time and known < row.time then
    purge(row)
    call('ZREM', resets, row.subject)
    call('ZADD', purged, string.format('%.0f', row.time), row.subject)
    call('EXPIRE', purged, ARGV[2])
    number_of_purged = number_of_purged + 1
  end
end
return number_of_purged
