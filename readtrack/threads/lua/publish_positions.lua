-- Makes threads unread, and the boards that they are in, by the time of the publication.
-- Guarantees: a publication is later than the positions of all pages that did not show it. The position of an author who
-- had read everything before is raised with it. Read state that was kept in other forms is removed. A publication that
-- is sent again with its token within its lifetime changes nothing. A thread has a bounded number of publications, and a
-- board one of threads. While the read state of this Redis is not restored, nothing is published.
-- KEYS: when this Redis began to know publications, keys of read state that changed; when everybody has read all; per thread: its publications, sent, positions of the author (those of anybody
--       without an author), states in other forms
-- ARGV: how long a publication can be unread (µs), number of threads, keys per thread, lifetime of publications (s),
--       lifetime of a token (s), most publications of a thread, most positions of a reader, what the keys of boards'
--       lists begin with, most threads of a list, channel of events or '';
--       per thread: its key, its name in events, what is published (a post, or '' if that is not known), number of items, token or '',
--       1 with an author, 1 if the thread is the author's own text, number of boards; these boards
-- Returns: our time (µs), or if all of it was sent before, that of the last one; then our time. 0 if this Redis has not begun
local call = redis.call
local began_key, changed, started_key = KEYS[1], KEYS[2], KEYS[3]
local kept_for, threads, keys_per_thread = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local news_life, token_life, most_publications = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local most_positions, board_prefix, most_threads = tonumber(ARGV[7]), ARGV[8], tonumber(ARGV[9])
local channel = ARGV[10]
local positions_life = news_life

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- positions.lua
-- raise.lua
-- place.lua
-- trim.lua

if call('EXISTS', began_key) == 0 then return {'0', '0'} end

-- Returns when the publication was sent before; nil if it is new.
local function first_sent(sent, token)
  if token == '' then return nil end
  call('ZREMRANGEBYSCORE', sent, '-inf', text_of(now - token_life * 1000000))
  local sent_before = call('ZSCORE', sent, token)
  if not sent_before then call('ZADD', sent, text_of(now), token) end
  call('EXPIRE', sent, token_life)
  return sent_before and tonumber(sent_before) or nil
end

local function last_of(news)
  local last = call('ZREVRANGE', news, 0, 0, 'WITHSCORES')
  local last_time = tonumber(last[2] or 0)
  if last_time <= LAST_BOARD then return 0 end
  return last_time
end

local function has_read(positions, news, key, last)
  local times = call('HMGET', positions, ALL, LATEST_BOARD, key)
  local floor = math.max(floor_of(started_key, times[1]), tonumber(times[3] or 0))
  return last < read_until(positions, news, floor, times[2])
end

local function add(news, published, items, published_at)
  if published ~= '' then
    call('ZADD', news, text_of(published_at), published)
  else
    for item = 1, math.min(items, most_publications) do
      call('ZADD', news, text_of(published_at), 'at ' .. text_of(published_at) .. ' ' .. item)
    end
  end
  trim(news)
  call('ZADD', changed, text_of(now), news)
end

-- Returns when it was published.
local function publish(thread, boards)
  local sent_before = first_sent(thread.sent, thread.token)
  if sent_before then return sent_before end
  local last = last_of(thread.news)
  local published_at = math.max(now, last + 1)
  move_to(thread.news, boards)
  local author = thread.author
  if author and (thread.is_own or has_read(author, thread.news, thread.key, last)) then
    raise(author, {thread.key, published_at + 1})
  end
  add(thread.news, thread.published, thread.items, published_at)
  place(thread.news, thread.key, published_at)
  -- An event that is refused, for want of a right, must not keep the thread from being unread.
  if channel ~= '' then redis.pcall('PUBLISH', channel, thread.event .. ' ' .. text_of(published_at)) end
  return now
end

local first_key, argument = 4, 11
local last_sent = 0
for _ = 1, threads do
  local last_key = first_key + keys_per_thread - 1
  local key, event, published, items, token, has_author, is_own, boards = unpack(ARGV, argument, argument + 7)
  local last_argument = argument + 7 + boards
  call('UNLINK', unpack(KEYS, first_key + 3, last_key))
  local sent_at = publish({
    news = KEYS[first_key],
    sent = KEYS[first_key + 1],
    author = has_author == '1' and KEYS[first_key + 2],
    key = key,
    event = event,
    published = published,
    items = tonumber(items),
    token = token,
    is_own = is_own == '1',
  }, {unpack(ARGV, argument + 8, last_argument)})
  last_sent = math.max(last_sent, sent_at)
  first_key = last_key + 1
  argument = last_argument + 1
end
return {text_of(last_sent), text_of(now)}
