-- Reads counters, and which of them are unsettled, at one moment.
-- KEYS: unsettled, key of each counter. ARGV: name of each counter in `unsettled`
-- A key of another type is as a missing one.
-- Returns: {counts}, or {counts, marks} where the mark of a settled counter is nil
local unsettled = KEYS[1]
local counts = redis.call('MGET', unpack(KEYS, 2))
local number_of_marks = tonumber(redis.pcall('ZCOUNT', unsettled, '-inf', '(+inf')) or 0
if number_of_marks == 0 then return {counts} end
return {counts, redis.call('ZMSCORE', unsettled, unpack(ARGV))}
