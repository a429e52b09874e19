-- Counts a hit of a visitor whose rate is in another partition than what the hit views.
-- Guarantees: no error, because one key that is no number must not keep a batch of other hits from being counted.
-- KEYS: rate. ARGV: 1 to count the hit, -1 to take it back, 0 for neither; rate window (s). Returns: hits since the first
local call = redis.pcall
local rate, change, rate_window = KEYS[1], ARGV[1], ARGV[2]
if change == '1' and call('SET', rate, 1, 'NX', 'EX', rate_window) then return 1 end
if change ~= '0' and call('EXISTS', rate) == 1 then call('INCRBY', rate, change) end
return tonumber(call('GET', rate)) or tonumber(change) > 0 and 1 or 0
