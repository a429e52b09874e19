-- Included in the scripts that may begin a counter.
-- Takes call.
-- Gives: mark_unsettled.

-- Enters a counter that has just begun: the flush adds what SQL already counted. The first one names the list.
-- A key of another type takes no counter.
local function mark_unsettled(unsettled, name)
  local time = call('TIME')
  local now = string.format('%.0f', time[1] * 1000000 + time[2])
  redis.pcall('ZADD', unsettled, 'NX', now, name)
  if redis.pcall('ZCARD', unsettled) == 1 then call('ZADD', unsettled, '+inf', 'epoch ' .. now .. ' 0 0 0') end
end
