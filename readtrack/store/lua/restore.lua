-- Gives counters back what SQL keeps of them: counts (a total, or the fields of a hash) and a sketch.
-- "settle" is for those that lack their base, "lift" raises all others that fell behind.
-- Guarantees: whoever removes a counter's mark adds its base, so it is added once, however many flushers try,
-- and however old the snapshot that Redis was restored from: each settling starts an epoch, which SQL knows
-- of before it stores what was settled. A Redis that stands before SQL's epoch may hold marks that were
-- settled in the history it lost, with their views in SQL: those merge by max. No count is ever lowered, and
-- a subject that was reset gets nothing back.
-- KEYS: epoch, unsettled, reset; per counter: its key, its sketch, a scratch key
-- ARGV: "settle" or "lift", SQL's epoch (read after the bases); per counter: its name, its id, its sketch or "",
--       seconds that it lives (0: for ever), number of fields, then field ("" is a total) and count of each
-- Returns: {number of counters settled or lifted, "current previous" epoch}
local call = redis.call
local epoch, unsettled, resets = KEYS[1], KEYS[2], KEYS[3]
local is_settling, head = ARGV[1] == 'settle', tonumber(ARGV[2])
local current, previous = string.match(call('GET', epoch) or '0 0', '(%d+) (%d+)')
local is_restored = is_settling and tonumber(current) ~= head

-- Whoever started the current epoch has not told SQL yet; the caller does it now and comes again.
if is_restored and tonumber(previous) == head then return {0, current .. ' ' .. previous} end

local function add(key, field, count)
  if count == '0' then return end
  if field == '' then call('INCRBY', key, count) else call('HINCRBY', key, field, count) end
end

-- Whether it was below. A total that is missing and unmarked begins with the next view, which marks it.
local function raise(key, field, count, mark)
  local live
  if field == '' then live = call('GET', key) else live = call('HGET', key, field) end
  if field == '' and not live and not mark then return false end
  if tonumber(live or 0) >= tonumber(count) then return false end
  if field == '' then call('SET', key, count, 'KEEPTTL') else call('HSET', key, field, count) end
  return true
end

local function merge(key, sketch, scratch, stored)
  if stored == '' or call('EXISTS', key) == 0 then return end
  call('SET', scratch, stored)
  redis.pcall('PFMERGE', sketch, scratch)  -- bytes that are no sketch are passed over
  call('DEL', scratch)
end

local changed, arg = 0, 3
for key = 4, #KEYS, 3 do
  local name, id, sketch = ARGV[arg], ARGV[arg + 1], ARGV[arg + 2]
  local life, fields = tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4])
  local mark = call('ZSCORE', unsettled, name)
  local is_due = not mark
  if is_settling then is_due = mark and (not is_restored or tonumber(mark) < head) end
  if is_due then
    local is_changed = is_settling
    if mark then call('ZREM', unsettled, name) end
    if not call('ZSCORE', resets, id) then
      for index = arg + 5, arg + 3 + 2 * fields, 2 do
        if is_settling and not is_restored then
          add(KEYS[key], ARGV[index], ARGV[index + 1])
        elseif raise(KEYS[key], ARGV[index], ARGV[index + 1], mark) then
          is_changed = true
        end
      end
      merge(KEYS[key], KEYS[key + 1], KEYS[key + 2], sketch)
      -- It may have ended between its mark and its base.
      if life > 0 and call('TTL', KEYS[key]) == -1 then call('EXPIRE', KEYS[key], life) end
    end
    if is_changed then changed = changed + 1 end
  end
  arg = arg + 5 + 2 * fields
end

-- A restored Redis is taken into the line once no mark of the lost history is left in it.
local starts = is_settling and changed > 0
if is_restored then starts = call('ZCOUNT', unsettled, '-inf', '(' .. ARGV[2]) == 0 end
if starts then
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  previous = ARGV[2]
  current = string.format('%.0f', math.max(now, head + 1, tonumber(current) + 1))
  call('SET', epoch, current .. ' ' .. previous)
end
return {changed, current .. ' ' .. previous}
