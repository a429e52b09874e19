-- The beginning of record.lua and record_batch.lua, which have its first argument in common.
-- KEYS: none. ARGV: numbers in a text: window (s), rate limit, rate that marks a robot, lifetimes of an hour, of a
--       model's hour, of a bucket and of a minute's visitors (s), rate window (s)
-- Returns: nothing
local call = redis.call
local COUNTED, RATE, REPEAT, HONEYPOT, BROKEN = 1, 2, 3, 4, 5
local window, limit, robot, hour_life, model_hour_life, bucket_life, minute_life, rate_window =
  string.match(ARGV[1], string.rep('(%d+) ?', 8))
limit, robot = tonumber(limit), tonumber(robot)

-- Enters a counter that has just begun: the flush adds what SQL already counted. The first one names the list.
local function mark(unsettled, name)
  local time = call('TIME')
  local now = string.format('%.0f', time[1] * 1000000 + time[2])
  call('ZADD', unsettled, 'NX', now, name)
  if call('ZCARD', unsettled) == 1 then call('ZADD', unsettled, '+inf', 'epoch ' .. now .. ' 0 0 0') end
end
