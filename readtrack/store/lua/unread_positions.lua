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
local times = call('HMGET', positions, ALL, unpack(ARGV, BEFORE_THREADS + 1))
local floor = floor_of(started_key, times[1])
for thread = 1, #KEYS - BEFORE_THREADS do
  local news = KEYS[BEFORE_THREADS + thread]
  local since = math.max(floor, tonumber(times[thread + 1] or 0))
  local count = 0
  if can_read then count = count_since(news, since) end
  -- Most threads have nothing new, so their boards make no difference.
  if count > 0 then count = count_since(news, read_until(positions, news, since)) end
  counts[thread] = count
end
return counts
