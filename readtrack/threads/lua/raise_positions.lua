-- Raises positions of one reader, that come from an import, from another partition or from another name.
-- Guarantees: a position never falls, so the same may be done again. A reader has a bounded number of positions.
-- KEYS: keys of read state that changed; positions of the reader
-- ARGV: lifetime of positions (s), most positions of a reader; fields and times (µs) in turn
-- Returns: 1
local call = redis.call
local changed, positions = KEYS[1], KEYS[2]
local positions_life, most_positions = ARGV[1], tonumber(ARGV[2])
local kept_for = 0

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- positions.lua
-- raise.lua

raise(positions, {unpack(ARGV, 3)})
return 1
