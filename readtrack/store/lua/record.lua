-- Records one hit: the subjects it views and the categories it reads.
-- Guarantees: a view counts once per visitor, subject and window, whoever sends this twice, for
-- every counter sits behind the window's SET NX. A category that was published to while the page
-- was being built stays unread.
-- KEYS: rate (which whoever followed the honeypot has beyond all limits), unbased, trending bucket, site hour;
--       per view: total, hour, hll, window of the visitor[, window of the visitor before the cookie];
--       per read: state, news[; after them all: readers, where the reader is a name]
-- ARGV: window s, rate limit (0: none), rate window s, visitor, keys per view, views, id of each view;
--       where something is read: reader, how long ago the page began us, when it began by our clock us
--       [, 'sequence' or 'bitmap' (if left out), highest reader]
-- Returns: per view 1 counted, 2 rate, 3 repeat, 4 honeypot; per read 1 read, 0 news came in between; our time us
local call = redis.call
local COUNTED, RATE, REPEAT = 1, 2, 3
local HONEYPOT, TRAPPED = 4, 1e15
local window, limit, width, views = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[5]), tonumber(ARGV[6])
local outcome = {}

local limited = false
if views > 0 and limit > 0 then
  -- Most hits are a visitor's only one in a window, so that one costs a single command.
  local hits = call('SET', KEYS[1], 1, 'NX', 'EX', ARGV[3]) and 1 or call('INCR', KEYS[1])
  if hits > limit then limited = hits > TRAPPED and HONEYPOT or RATE end
end

for view = 1, views do
  local key = 5 + width * (view - 1)
  if limited then
    outcome[view] = limited
  elseif width == 5 and not call('SET', KEYS[key + 4], 1, 'NX', 'EX', window) then
    outcome[view] = REPEAT
  elseif not call('SET', KEYS[key + 3], 1, 'NX', 'EX', window) then
    outcome[view] = REPEAT
  else
    local id = ARGV[6 + view]
    -- A total that was missing lacks what SQL knows: the flush settles that.
    if call('INCR', KEYS[key]) == 1 then
      local time = call('TIME')
      call('ZADD', KEYS[2], 'NX', string.format('%.0f', time[1] * 1000000 + time[2]), id)
    end
    if call('INCR', KEYS[key + 1]) == 1 then call('EXPIRE', KEYS[key + 1], 86400) end
    if call('INCR', KEYS[4]) == 1 then call('EXPIRE', KEYS[4], 172800) end
    call('PFADD', KEYS[key + 2], ARGV[4])
    -- The score is 1 only for a subject new to this minute, so the bucket's life is set rarely.
    if call('ZINCRBY', KEYS[3], 1, id) == '1' then call('EXPIRE', KEYS[3], 4200) end
    outcome[view] = COUNTED
  end
end

local first = 5 + width * views
if first > #KEYS then return outcome end

-- When the page began is the earlier of what the web server makes of our last answer, and of now less
-- the time it took. So neither a hit that was late on its way, nor a step of our clock, hides news.
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local reader = ARGV[7 + views]
local since = math.min(now - ARGV[8 + views], tonumber(ARGV[9 + views]))
local is_sequence = ARGV[10 + views] == 'sequence'
-- What was published longer ago than a day is not remembered.
if since < now - 86400000000 then since = 0 end
if (#KEYS - first) % 2 == 0 then
  local name = reader
  reader = call('HGET', KEYS[#KEYS], name)
  if not reader then
    reader = call('HLEN', KEYS[#KEYS])
    if reader > tonumber(ARGV[11 + views]) then
      since = 0
    else
      call('HSET', KEYS[#KEYS], name, reader)
    end
  end
end

for key = first, #KEYS - 1, 2 do
  local state, news = KEYS[key], tonumber(call('GET', KEYS[key + 1]) or 0)
  -- The clock was set back: from now on pages begin after this again.
  if news > now then call('SET', KEYS[key + 1], string.format('%.0f', now), 'KEEPTTL') end
  if news >= since then
    outcome[#outcome + 1] = 0
  else
    if is_sequence then
      local published = call('BITFIELD', state, 'GET', 'u32', 0)[1]
      call('BITFIELD', state, 'SET', 'u32', '#' .. reader + 1, published + 1)
    else
      call('SETBIT', state, reader, 1)
    end
    outcome[#outcome + 1] = 1
  end
end
outcome[#outcome + 1] = string.format('%.0f', now)
return outcome
