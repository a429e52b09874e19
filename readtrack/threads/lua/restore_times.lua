-- Gives a Redis that lost its read state, or was restored from an older snapshot, what SQL has of a key of positions.
-- Guarantees: changes nothing in a Redis that has begun, or that somebody else restores. Of two times the later one stays.
-- KEYS: when this Redis began to know publications, who restores it; the key
-- ARGV: the token; what the key is: 'positions' of a reader, 'start' for when everybody has read all, or the 'news' of a thread;
--       its lifetime (s), how long a publication can be unread (µs), most positions of a reader, most publications of a
--       thread, what the keys of boards' lists begin with, most threads of a list, the thread's key;
--       names and times (µs) in turn
-- Returns: 1; -1 if nothing was changed
local call = redis.call
local began_key, restoring_key, key = KEYS[1], KEYS[2], KEYS[3]
local token, kind, life, kept_for = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local most_positions, most_publications = tonumber(ARGV[5]), tonumber(ARGV[6])
local board_prefix, most_threads, thread = ARGV[7], tonumber(ARGV[8]), ARGV[9]
local content = {unpack(ARGV, 10)}
local positions_life, news_life = life, life
local changed = nil -- SQL has it

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- restoring.lua
-- positions.lua
-- raise.lua
-- place.lua
-- trim.lua

if not is_restored_by(began_key, restoring_key, token) then return -1 end

local function restore_start(stored)
  local started = math.max(tonumber(stored), tonumber(call('GET', key) or 0))
  call('SET', key, text_of(started), 'EX', life)
end

local function last_of(news)
  local last = call('ZREVRANGE', news, 0, 0, 'WITHSCORES')
  return tonumber(last[2] or 0)
end

local function restore_news(news)
  local last_before = last_of(news)
  local boards, last_stored = {}, 0
  for index = 1, #content, 2 do
    local name, stored = content[index], tonumber(content[index + 1])
    if stored <= LAST_BOARD then
      boards[stored] = name
    else
      call('ZADD', news, 'GT', text_of(stored), name)
      last_stored = math.max(last_stored, stored)
    end
  end
  -- The thread may have moved since the earlier of the two.
  if last_before <= last_stored then set_stays(news, boards) end
  trim(news)
  place(news, thread, last_of(news))
end

if kind == 'positions' then
  raise(key, content)
elseif kind == 'start' then
  restore_start(content[2])
else
  restore_news(key)
end
return 1
