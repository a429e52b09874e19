-- Places a thread in its boards after it was moved to another one.
-- Guarantees: a thread without publications stays without a key.
-- KEYS: keys of read state that changed; the thread's publications
-- ARGV: how long a publication can be unread (µs), lifetime of publications (s), what the keys of boards' lists begin with, most threads of a list, the thread's
--       key; its boards
-- Returns: 1; 0 for a thread without publications
local call = redis.call
local changed, news = KEYS[1], KEYS[2]
local kept_for, news_life = tonumber(ARGV[1]), ARGV[2]
local board_prefix, most_threads, key = ARGV[3], tonumber(ARGV[4]), ARGV[5]

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- positions.lua
-- place.lua

local last = call('ZREVRANGE', news, 0, 0, 'WITHSCORES')
if #last == 0 then return 0 end
move_to(news, {unpack(ARGV, 6)})
place(news, key, tonumber(last[2]))
call('ZADD', changed, text_of(now), news)
return 1
