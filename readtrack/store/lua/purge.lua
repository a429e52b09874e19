-- Removes what subjects hold from before they were reset, where a restored Redis has it back.
-- Guarantees: what began after the reset stays, and so does everything where Redis knows of the reset, or of a flush
-- that began after it.
-- KEYS: unsettled, reset, last flush; per subject: total, sketch, hashes, others
-- ARGV: keys per subject, hashes per subject; per subject: time of its reset us, id, names of hashes in `unsettled`
-- Returns: number of subjects that Redis had forgotten the reset of
local call = redis.call
local unsettled, resets = KEYS[1], KEYS[2]
local width, hashes = tonumber(ARGV[1]), tonumber(ARGV[2])
local last = tonumber(call('GET', KEYS[3]) or 0)
local forgotten = 0

-- Whatever begins in this Redis is marked with the time of it, until it is settled.
local function is_older(name, time)
  return tonumber(call('ZSCORE', unsettled, name) or 0) < time
end

local arg = 3
for key = 4, #KEYS, width do
  local time, id = tonumber(ARGV[arg]), ARGV[arg + 1]
  if last <= time and tonumber(call('ZSCORE', resets, id) or 0) < time then
    forgotten = forgotten + 1
    for index = 1, hashes do
      local name = ARGV[arg + 1 + index]
      if is_older(name, time) then
        call('UNLINK', KEYS[key + 1 + index])
        call('ZREM', unsettled, name)
      end
    end
    if is_older(id, time) then
      call('UNLINK', KEYS[key], KEYS[key + 1], unpack(KEYS, key + 2 + hashes, key + width - 1))
      call('ZREM', unsettled, id)
    end
  end
  arg = arg + 2 + hashes
end
return forgotten
