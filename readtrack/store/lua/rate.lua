-- Counts a hit of a visitor whose rate is in another partition than what the hit views.
-- KEYS: rate. ARGV: 1 to count the hit, -1 to take it back, 0 for neither; rate window (s). Returns: hits since the first
local call = redis.call
local rate, change, rate_window = KEYS[1], ARGV[1], ARGV[2]
if change == '1' then return call('SET', rate, 1, 'NX', 'EX', rate_window) and 1 or call('INCR', rate) end
if change == '-1' and call('EXISTS', rate) == 1 then return call('DECR', rate) end
return tonumber(call('GET', rate) or 0)
