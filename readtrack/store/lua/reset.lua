-- Sets subjects to zero, and notes the time, so that a flush that read an older count does not bring it back.
-- KEYS: unsettled, reset; keys of each subject
-- ARGV: JSON: per subject {subject, names: those of its total and hashes in `unsettled`, first and last: numbers of its keys}
-- Returns: the time of the reset (µs)
local call = redis.call
local unsettled, resets = KEYS[1], KEYS[2]
local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
for _, row in ipairs(cjson.decode(ARGV[1])) do
  call('ZADD', resets, now, row.subject)
  call('UNLINK', unpack(KEYS, row.first, row.last))
  call('ZREM', unsettled, unpack(row.names))
end
return now
