-- Reads when threads were last published to.
-- Guarantees: writes nothing.
-- KEYS: per thread: its publications. ARGV: the highest number of a board, which stands in the place of a time
-- Returns: per thread the time of its last publication (µs), nothing for a thread without publications
local last_board = tonumber(ARGV[1])
local times = {}
for thread, news in ipairs(KEYS) do
  local last = redis.call('ZREVRANGE', news, 0, 0, 'WITHSCORES')[2]
  times[thread] = last and tonumber(last) > last_board and last or false
end
return times
