-- Adds one part of an import to the counts.
-- Guarantees: a part is added once, whoever sends it twice, for its position moves in the same step; and only
-- to the Redis that it was announced to. What is trending and how long keys live stays as it is. The totals that
-- this led to are kept, which tell what is stored before from what is stored after.
-- KEYS: import, unsettled, total of each subject, hours
-- ARGV: position before the part, position after it, number of subjects, id and views of each;
--       of each hour its name in `unsettled` (of a subject's ""), its views, when it ends (s since 1970)
-- Returns: 1 applied, now or before; 0 refused; 2 refused until what was marked now has its base
local call = redis.call
local import, unsettled = KEYS[1], KEYS[2]
local before, after, subjects = ARGV[1], ARGV[2], tonumber(ARGV[3])
local state = call('HMGET', import, 'begun', 'done')
if state[1] ~= after then return 0 end
if state[2] == after then return 1 end
if state[2] ~= before then return 0 end

local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
local is_settled = true

-- A counter that is missing lacks what SQL knows: the flush settles that.
local function begin(key, name)
  local is_new = call('SET', key, 0, 'NX')
  if is_new then call('ZADD', unsettled, 'NX', now, name) end
  if call('ZSCORE', unsettled, name) then is_settled = false end
  return is_new
end

for subject = 1, subjects do begin(KEYS[2 + subject], ARGV[2 + 2 * subject]) end
local first = 2 + subjects
for slot = 1, #KEYS - first do
  local argument, key = 1 + 2 * subjects + 3 * slot, KEYS[first + slot]
  if ARGV[argument] ~= '' and begin(key, ARGV[argument]) then call('EXPIREAT', key, ARGV[argument + 2]) end
end
if not is_settled then return 2 end

local totals = {}
for subject = 1, subjects do
  local total = call('INCRBY', KEYS[2 + subject], ARGV[3 + 2 * subject])
  totals[subject] = string.format('%.0f', total)
end
for slot = 1, #KEYS - first do
  local argument, key = 1 + 2 * subjects + 3 * slot, KEYS[first + slot]
  local views, ends = ARGV[argument + 1], ARGV[argument + 2]
  call('INCRBY', key, views)
  if call('TTL', key) < 0 then call('EXPIREAT', key, ends) end
end
call('HSET', import, 'done', after, 'totals', table.concat(totals, ' '))
return 1
