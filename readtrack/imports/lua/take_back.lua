-- Takes a batch of an import back from the counters.
-- Guarantees: takes a batch back once, however often it is sent; takes it only from the Redis that it was announced to. No
--   counter falls below 0. Notes the totals as reset, so that a flush that read an older count does not bring it back.
-- KEYS: import, unsettled, reset, counters
-- ARGV: position after the batch, the present hour; for each counter: its name in `unsettled` ("" for a subject's hours,
--       which SQL does not keep), its views, its field in a hash of hours ("" for any other counter)
-- Returns: {1 taken back now; 3 taken back earlier; 0 refused; 2 refused until the counters that are unsettled now are
--          settled; the hour in which it was taken back; the time (µs)}
local call = redis.call
local import, unsettled, resets, position, hour = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
local state = call('HMGET', import, 'taking', 'taken', 'taken_hour', 'taken_time')
if state[1] ~= position then return {0, '', ''} end
if state[2] == position then return {3, state[3], state[4]} end

-- unsettled.lua
local is_settled = true
for index = 4, #KEYS do
  local name = ARGV[3 * index - 9]
  if name ~= '' then
    if call('SET', KEYS[index], 0, 'NX') then mark_unsettled(unsettled, name) end
    if call('ZSCORE', unsettled, name) then is_settled = false end
  end
end
if not is_settled then return {2, '', ''} end

local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
for index = 4, #KEYS do
  local key, name, views, field = KEYS[index], unpack(ARGV, 3 * index - 9, 3 * index - 7)
  local number
  if field == '' then number = redis.pcall('GET', key) else number = redis.pcall('HGET', key, field) end
  number = tonumber(number or '')  -- nil for a key of another type: an error would leave the batch half taken back
  local taken = math.min(tonumber(views), number or 0)
  if number and field == '' then call('DECRBY', key, string.format('%.0f', taken)) end
  if number and field ~= '' then call('HINCRBY', key, field, string.format('%.0f', 0 - taken)) end
  if name ~= '' then call('ZADD', resets, now, name) end
end
call('HSET', import, 'taken', position, 'taken_hour', hour, 'taken_time', now)
return {1, hour, now}
