-- Counts what is new to one reader in many threads, by the times up to which the reader has read.
-- Guarantees: writes nothing. While the read state of this Redis is not restored, nothing is counted.
-- KEYS: when this Redis began to know publications; when everybody has read all; positions of the reader; per thread: its publications
-- ARGV: how long a publication can be unread (µs), 1 for a reader who can have positions; per thread: its key
-- Returns: the number for each thread; 0 for a reader who can have no positions. Nothing if this Redis has not begun
local call = redis.call
local began_key, started_key, positions = KEYS[1], KEYS[2], KEYS[3]
local kept_for, can_read = tonumber(ARGV[1]), ARGV[2] == '1'
local KEYS_BEFORE_THREADS, ARGUMENTS_BEFORE_THREADS = 3, 2

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- positions.lua

if call('EXISTS', began_key) == 0 then return false end

local counts = {}
local times = call('HMGET', positions, ALL, LATEST_BOARD, unpack(ARGV, ARGUMENTS_BEFORE_THREADS + 1))
local floor, latest_board = floor_of(started_key, times[1]), times[2]
local floor_text = text_of(floor)
for thread = 1, #KEYS - KEYS_BEFORE_THREADS do
  local news, position = KEYS[KEYS_BEFORE_THREADS + thread], times[thread + 2]
  local since, since_text = floor, floor_text
  if position and tonumber(position) > floor then since, since_text = tonumber(position), position end
  local count = 0
  if can_read then count = count_since(news, since_text) end
  if count > 0 then
    -- Most threads have nothing new, so their boards make no difference.
    local read_before = read_until(positions, news, since, latest_board)
    if read_before > since then count = count_since(news, text_of(read_before)) end
  end
  counts[thread] = count
end
return counts
