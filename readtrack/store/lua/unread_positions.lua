-- Counts what is new to one reader in many threads, by the times up to which the reader has read.
-- Guarantees: writes nothing.
-- KEYS: when everybody has read all; positions of the reader; per thread: its publications
-- ARGV: how long a publication can be unread (µs), 1 for a reader who can have positions; per thread: its key
-- Returns: the number for each thread; 0 for a reader who can have no positions
local call = redis.call
local started_key, positions = KEYS[1], KEYS[2]
local kept_for, can_read = tonumber(ARGV[1]), ARGV[2] == '1'
local BEFORE_THREADS = 2 -- keys, and arguments

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- positions.lua

local counts = {}
local times = call('HMGET', positions, ALL, LATEST_BOARD, unpack(ARGV, BEFORE_THREADS + 1))
local floor, latest_board = floor_of(started_key, times[1]), times[2]
local floor_text = text_of(floor)
for thread = 1, #KEYS - BEFORE_THREADS do
  local news, position = KEYS[BEFORE_THREADS + thread], times[thread + 2]
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
