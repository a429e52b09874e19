-- Reads counters, and which of them lack SQL's base, at one moment.
-- KEYS: unsettled, total of each subject. ARGV: id of each subject, or none to be told only of totals with their base.
-- Returns: {totals}, or {totals, marks} where a mark is nil for a total that has its base
local unsettled = KEYS[1]
local totals = redis.call('MGET', unpack(KEYS, 2))
if redis.call('EXISTS', unsettled) == 0 then return {totals} end
return {totals, redis.call('ZMSCORE', unsettled, unpack(ARGV))}
