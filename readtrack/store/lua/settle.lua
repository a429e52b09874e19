-- Gives counters what SQL stores of them: counts (a total, or the fields of a hash), and a sketch or a number of visitors.
-- "settle" adds SQL's count to unsettled counters. "lift" raises settled counters that are below SQL's count.
-- Guarantees:
--   SQL's count is added once, however many flushes try, because only the one that removes the mark adds it.
--   It is added once even to a Redis that was restored from a snapshot. Each settling starts an epoch, and SQL is told
--   of an epoch before it stores what was settled in it. A Redis in another epoch than SQL may hold marks of counters
--   that were settled in the history it lost, with their views in SQL: those merge by maximum. Epochs have names that
--   are drawn at random, so no clock decides, and two histories never share one.
--   No count is lowered, and a subject that was reset gets nothing back.
--   It works while Redis's memory is full.
-- The epoch is the last member of the list of unsettled counters, so that neither is ever without the other:
--   "epoch", the name of the list, drawn when it began; the epochs of the last two settlings; when the newest counter
--   began that was ever settled (µs). Epochs are 0 for none.
-- KEYS: unsettled, reset; per counter: its key; its sketch and a scratch key, or the key that its visitors are counted by
--       and that of the visitors that Redis lost
-- ARGV: "settle" or "lift"; the name of a new epoch; the list whose epoch SQL was asked for after it gave the counts,
--       that epoch ("" if SQL knows no such list), and the time of the newest counter that was settled in it (µs);
--       JSON: per counter {name, subject, life (s, 0: stays), counts: {{field ("" is a total), count}, ...},
--       sketch: number of the argument that holds it, or visitors: {number, command that counts those at their key},
--       or neither}; then the sketches
-- Returns: {number of counters settled or lifted, epoch: "epoch origin current previous until"}
local call = redis.call
local unsettled, resets = KEYS[1], KEYS[2]
local is_settling, name, asked, known, known_until = ARGV[1] == 'settle', ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local counters = cjson.decode(ARGV[6])
call('ZREM', unsettled, '')  -- there is none; but a full Redis lets a script go on that has written
local last = call('ZRANGE', unsettled, -1, -1, 'WITHSCORES')
local entry = last[2] == 'inf' and last[1] or 'epoch 0 0 0 0'
local origin, current, previous, newest = string.match(entry, 'epoch (%d+) (%d+) (%d+) (%d+)')
local is_restored = is_settling and known ~= '' and known ~= current

-- Another list has taken this one's place, or the flush that started the current epoch has not told SQL yet. The caller
-- asks or tells SQL, and comes again.
if is_settling and origin ~= asked or is_restored and known == previous then return {0, entry} end

local function add(key, field, count)
  if count == '0' then return end
  if field == '' then redis.pcall('INCRBY', key, count) else redis.pcall('HINCRBY', key, field, count) end
end

-- Returns true if the count was below. A total that is missing and not marked begins with the next view, which marks it.
-- A total that is no number, or a hash of another type, stays as it is.
local function raise(key, field, count, mark)
  local live
  if field == '' then live = redis.pcall('GET', key) else live = redis.pcall('HGET', key, field) end
  if field == '' and not live and not mark then return false end
  if (tonumber(live or 0) or math.huge) >= tonumber(count) then return false end
  if field == '' then call('SET', key, count, 'KEEPTTL') else call('HSET', key, field, count) end
  return true
end

local function merge(key, sketch, scratch, stored)
  if call('EXISTS', key) == 0 then return end
  call('SET', scratch, stored)
  redis.pcall('PFMERGE', sketch, scratch)  -- skips bytes that are no sketch
  call('DEL', scratch)
end

-- Lets the number of visitors go on from SQL's. A key with more visitors than the new total has views did not begin with
-- it, so it may hold some of SQL's: then the number is only raised to SQL's, as that of a settled counter is.
local function go_on(key, members, earlier, visitors)
  local views = redis.pcall('GET', key)
  if not views then return end
  local live = tonumber(redis.pcall(visitors[2], members)) or 0
  local is_new = is_settling and not is_restored and live <= (tonumber(views) or 0)
  local lost = visitors[1] - (is_new and 0 or live)
  if lost > tonumber(call('GET', earlier) or 0) then call('SET', earlier, string.format('%.0f', lost)) end
end

local function is_due(mark)
  if not is_settling then return not mark end
  return mark and (not is_restored or tonumber(mark) <= known_until)
end

-- Returns true if a count of the counter changed.
local function restore(counter, mark, key, sketch, scratch)
  local is_changed = false
  if counter.visitors then go_on(key, sketch, scratch, counter.visitors) end  -- before SQL's views are added
  for _, pair in ipairs(counter.counts) do
    local field, count = pair[1], pair[2]
    if is_settling and not is_restored then
      add(key, field, count)
    elseif raise(key, field, count, mark) then
      is_changed = true
    end
  end
  if counter.sketch then merge(key, sketch, scratch, ARGV[counter.sketch]) end
  -- The counter may have expired between its mark and now; then this began it anew.
  if counter.life > 0 and call('TTL', key) == -1 then call('EXPIRE', key, counter.life) end
  return is_changed
end

local changed = 0
for index, counter in ipairs(counters) do
  local mark = call('ZSCORE', unsettled, counter.name)
  if is_due(mark) then
    local is_changed = is_settling
    if mark then
      call('ZREM', unsettled, counter.name)
      if tonumber(mark) > tonumber(newest) then newest = mark end
    end
    if not call('ZSCORE', resets, counter.subject) then
      is_changed = restore(counter, mark, KEYS[3 * index], KEYS[3 * index + 1], KEYS[3 * index + 2]) or is_changed
    end
    if is_changed then changed = changed + 1 end
  end
end

-- A restored Redis joins SQL's epochs once it holds no mark of the history it lost.
local starts = is_settling and (changed > 0 or origin == '0')
if is_restored then
  starts = call('ZCOUNT', unsettled, '-inf', ARGV[5]) == 0
  current, newest = origin == '0' and '0' or known, math.max(known_until, newest)
end
if starts then
  call('ZREM', unsettled, entry)
  entry = table.concat({'epoch', origin == '0' and name or origin, name, current, string.format('%.0f', newest)}, ' ')
  call('ZADD', unsettled, '+inf', entry)
end
return {changed, entry}
