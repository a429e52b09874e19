-- Gives a flush the subjects that it has to store: those of the list of what changed, which begins anew, and those that
-- earlier flushes took and have not stored, because they were killed or still run.
-- Guarantees: a subject stays until a flush that took it after its last change has ended well. It works while Redis's
--   memory is full. A list of another type, which somebody else has written, is as an empty one, and goes.
-- KEYS: changed, flushing. ARGV: lifetime of the second list (s)
-- Returns: when they were taken (µs), by a clock that never goes back; the subjects
local call = redis.call
local changed, flushing = KEYS[1], KEYS[2]
if call('TYPE', changed).ok ~= 'zset' then call('UNLINK', changed) end
call('ZREM', changed, '')  -- there is none; but a full Redis lets a script go on that has written
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local last = call('ZRANGE', flushing, -1, -1, 'WITHSCORES')
if last[2] then now = math.max(now, tonumber(last[2]) + 1) end
now = string.format('%.0f', now)
if call('EXISTS', changed) == 1 then
  call('ZUNIONSTORE', flushing, 2, flushing, changed, 'WEIGHTS', 1, now, 'AGGREGATE', 'MAX')
  call('EXPIRE', flushing, ARGV[1])
  call('UNLINK', changed)
end
return {now, call('ZRANGE', flushing, 0, -1)}
