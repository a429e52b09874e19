-- Places a thread in its boards after it was moved to another one.
-- Guarantees: a thread without publications stays without a key.
-- KEYS: keys of read state that changed; the thread's publications
-- ARGV: lifetime of publications (s), what the keys of boards' lists begin with, most threads of a list, the thread's
--       key; its boards
-- Returns: 1; 0 for a thread without publications
local call = redis.call
local changed, news = KEYS[1], KEYS[2]
local news_life, board_prefix, most_threads, key = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local kept_for = 0

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- positions.lua
-- place.lua

local last = call('ZREVRANGE', news, 0, 0, 'WITHSCORES')
if #last == 0 then return 0 end
set_boards(news, {unpack(ARGV, 5)})
place(news, key, tonumber(last[2]))
call('ZADD', changed, text_of(now), news)
return 1
