-- Marks visitors as robots.
-- Guarantees: no more new marks than that many within an hour of the first one. A mark is renewed in any case.
-- KEYS: number of new marks, rate of each visitor
-- ARGV: rate that marks a robot, its lifetime (s), most new marks, lifetime of their number (s)
-- Returns: number of visitors marked
local call = redis.call
local robot, life, most, period = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local marked = 0
for key = 2, #KEYS do
  local is_known = tonumber(call('GET', KEYS[key]) or 0) >= tonumber(robot)
  if is_known or tonumber(call('GET', KEYS[1]) or 0) < most then
    if not is_known and call('INCR', KEYS[1]) == 1 then call('EXPIRE', KEYS[1], period) end
    call('SET', KEYS[key], robot, 'EX', life)
    marked = marked + 1
  end
end
return marked
