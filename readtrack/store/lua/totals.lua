-- Reads counters, and which of them are unsettled, at one moment.
-- KEYS: unsettled, key of each counter. ARGV: name of each counter in `unsettled`
-- Returns: {counts}, or {counts, marks} where the mark of a settled counter is nil
local unsettled = KEYS[1]
local counts = redis.call('MGET', unpack(KEYS, 2))
if redis.call('ZCOUNT', unsettled, '-inf', '(+inf') == 0 then return {counts} end
return {counts, redis.call('ZMSCORE', unsettled, unpack(ARGV))}
