-- Marks all threads, or those of one board, read for one reader up to a time, by one position.
-- Guarantees: as in mark_read_positions.lua.
-- KEYS: when this Redis began to know publications; positions of the reader
-- ARGV: how long ago the page began, and when (see mark_read_positions.lua), lifetime of positions (s), most positions of
--       a reader, the position: '*' for all threads, or the name of a board
-- Returns: 1; 0 for a time of ours that lies in the future, and if this Redis has not begun
local call = redis.call
local began_key, positions = KEYS[1], KEYS[2]
local page_age, page_began = tonumber(ARGV[1]), tonumber(ARGV[2])
local positions_life, most_positions, field = ARGV[3], tonumber(ARGV[4]), ARGV[5]
local kept_for = 0

-- since.lua
-- positions.lua
-- raise.lua

if call('EXISTS', began_key) == 0 then return 0 end

local since = page_since()
if since == 0 then return 0 end
-- All other positions are earlier, and say nothing any more.
if field == ALL and since >= now then call('UNLINK', positions) end
raise(positions, {field, since})
return 1
