-- Raises positions of one reader, that come from an import, from another partition or from another name.
-- Guarantees: a position never falls, so the same may be done again. A reader has a bounded number of positions.
-- KEYS: positions of the reader
-- ARGV: lifetime of positions (s), most positions of a reader; fields and times (µs) in turn
-- Returns: 1
local call = redis.call
local positions = KEYS[1]
local positions_life, most_positions = ARGV[1], tonumber(ARGV[2])
local now, kept_for = 0, 0

-- positions.lua
-- raise.lua

raise(positions, {unpack(ARGV, 3)})
return 1
