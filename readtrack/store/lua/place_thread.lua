-- Places a thread in its boards after it was moved to another one.
-- Guarantees: a thread without publications stays without a key.
-- KEYS: the thread's publications
-- ARGV: lifetime of publications (s), what the keys of boards' lists begin with, most threads of a list, the thread's
--       key; its boards
-- Returns: 1; 0 for a thread without publications
local call = redis.call
local news = KEYS[1]
local news_life, board_prefix, most_threads, key = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local now, kept_for = 0, 0

-- positions.lua
-- place.lua

local last = call('ZREVRANGE', news, 0, 0, 'WITHSCORES')
if #last == 0 then return 0 end
set_boards(news, {unpack(ARGV, 5)})
place(news, key, tonumber(last[2]))
return 1
