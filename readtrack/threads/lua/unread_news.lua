-- Tells up to when one reader has read a thread, and which publications are new to the reader.
-- Guarantees: writes nothing.
-- KEYS: when this Redis began to know publications; when everybody has read all; positions of the reader; the thread's publications
-- ARGV: how long a publication can be unread (µs), the thread's key, most publications of a thread
-- Returns: the reader's position (µs, 0 for none); 1 if there may be older ones that are new, because the thread has as
--          many as it can have; what is published and new. Nothing if this Redis has not begun
local call = redis.call
local began_key, started_key, positions, news = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local kept_for, key, most_publications = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- positions.lua

if call('EXISTS', began_key) == 0 then return false end

local times = call('HMGET', positions, ALL, LATEST_BOARD, key)
local position = math.max(tonumber(times[1] or 0), tonumber(times[3] or 0), tonumber(call('GET', started_key) or 0))
position = read_until(positions, news, position, times[2])
local since = math.max(position, now - kept_for)
local published = call('ZRANGEBYSCORE', news, text_of(since), '+inf')
local is_cut = #published >= most_publications and 1 or 0
return {text_of(position), is_cut, unpack(published)}
