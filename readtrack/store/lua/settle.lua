-- Adds SQL's base to totals that lack it.
-- Guarantees: whoever removes the mark adds the base, so it is added once, however many flushers try,
-- and however old the snapshot that Redis was restored from: each settling starts an epoch, which SQL knows
-- of before it stores what was settled. A Redis that stands before SQL's epoch may hold marks that were
-- settled in the history it lost, with their views in SQL: those merge by max.
-- KEYS: epoch, unbased, total of each subject
-- ARGV: SQL's epoch, read after the bases; id of each, base of each
-- Returns: {number of totals settled, "current previous" epoch}
local epoch, unbased = KEYS[1], KEYS[2]
local head = tonumber(ARGV[1])
local count = #KEYS - 2
local current, previous = string.match(redis.call('GET', epoch) or '0 0', '(%d+) (%d+)')

-- Whoever started the current epoch has not told SQL yet; the caller does it now and comes again.
if tonumber(current) ~= head and tonumber(previous) == head then return {0, current .. ' ' .. previous} end

local is_restored = tonumber(current) ~= head
local settled = 0
for index = 1, count do
  local total, id, base = KEYS[2 + index], ARGV[1 + index], ARGV[1 + count + index]
  local mark = redis.call('ZSCORE', unbased, id)
  if mark and not is_restored then
    redis.call('ZREM', unbased, id)
    if base ~= '0' then redis.call('INCRBY', total, base) end
    settled = settled + 1
  elseif mark and tonumber(mark) < head then
    redis.call('ZREM', unbased, id)
    if tonumber(base) > tonumber(redis.call('GET', total) or 0) then redis.call('SET', total, base) end
    settled = settled + 1
  end
end

-- A restored Redis is taken into the line once no mark of the lost history is left in it.
local starts = settled > 0
if is_restored then starts = redis.call('ZCOUNT', unbased, '-inf', '(' .. ARGV[1]) == 0 end
if starts then
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  previous = ARGV[1]
  current = string.format('%.0f', math.max(now, head + 1, tonumber(current) + 1))
  redis.call('SET', epoch, current .. ' ' .. previous)
end
return {settled, current .. ' ' .. previous}
