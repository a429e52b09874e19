-- Reads when threads were last published to.
-- Guarantees: writes nothing.
-- KEYS: publications of each thread. ARGV: none
-- Returns: per thread the time (µs); nothing for a thread without publications
local call = redis.call
local now, kept_for = 0, 0

-- positions.lua

local times = {}
for index, news in ipairs(KEYS) do
  local last = call('ZREVRANGE', news, 0, 0, 'WITHSCORES')[2]
  times[index] = last and tonumber(last) > LAST_BOARD and last or false
end
return times
