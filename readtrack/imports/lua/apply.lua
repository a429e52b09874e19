-- Adds a batch of an import to the counters.
-- Guarantees: adds a batch once, however often it is sent, because its position moves in the same step; adds it only
-- to the Redis that it was announced to. Does not change what is trending, nor how long existing keys live, except that
-- the hours of a subject live as long as those that it adds. Keeps the totals as they are after this step, and its time:
-- they tell history rows from before it from rows written since, and resets from before it from later ones.
-- A total that would pass the highest one, or that is no number, stays as it is.
-- KEYS: import, unsettled, counters
-- ARGV: position before the batch, position after it, the highest total; for each counter: its name in `unsettled` ("" for a subject's
--       hours, which SQL does not keep), its views, its end (s since 1970; 0 for a total, which has none), its field in a
--       hash of hours ("" for any other counter)
-- Returns: 1 added, now or earlier; 0 refused; 2 refused until the counters that are unsettled now are settled
local call = redis.call
local import, unsettled, before, after = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local highest = tonumber(ARGV[3])
local state = call('HMGET', import, 'begun', 'done')
if state[1] ~= after then return 0 end
if state[2] == after then return 1 end
if state[2] ~= before then return 0 end

-- unsettled.lua
local is_settled = true
for index = 3, #KEYS do
  local key, arg = KEYS[index], 4 * index - 8
  local name, ends = ARGV[arg], ARGV[arg + 2]
  if name ~= '' then
    if call('SET', key, 0, 'NX') then
      mark_unsettled(unsettled, name)
      if ends ~= '0' then call('EXPIREAT', key, ends) end
    end
    if call('ZSCORE', unsettled, name) then is_settled = false end
  end
end
if not is_settled then return 2 end

-- Returns the new total, or -1 if the views are not added. An error would leave the batch half added.
local function add_to_total(key, views)
  local total = redis.pcall('INCRBY', key, views)
  if type(total) ~= 'number' then return -1 end
  if total > highest then
    call('DECRBY', key, views)
    return -1
  end
  return total
end

local totals = {}
local present = call('TIME')[1]
for index = 3, #KEYS do
  local key, arg = KEYS[index], 4 * index - 8
  local views, ends, field = unpack(ARGV, arg + 1, arg + 3)
  if ends == '0' then
    totals[#totals + 1] = string.format('%.0f', add_to_total(key, views))
  else
    if field == '' then redis.pcall('INCRBY', key, views) else redis.pcall('HINCRBY', key, field, views) end
    local life = call('TTL', key)
    -- A hash of hours may be about to go, because SQL has those that it had; and its new ones would go with it.
    local is_short = field ~= '' and life < ends - present
    if life == -1 or is_short then call('EXPIREAT', key, ends) end
  end
end
local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
call('HSET', import, 'done', after, 'totals', table.concat(totals, ' '), 'done_time', now)
return 1
