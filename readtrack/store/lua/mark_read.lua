-- Marks categories read for one reader.
-- Guarantees: a category that was published to since the page began stays unread. When that was is the earlier of
-- what the web server makes of our last answer, and of now less the time it took. So neither a hit that was late on
-- its way, nor a step of our clock, hides news. A moment of ours that lies ahead was taken before our clock was set
-- back: it tells nothing. A reader that is a name is given a number once.
-- KEYS: per category: state, news; after them all, where the reader is a name: readers
-- ARGV: categories, reader, how long ago the page began us ('' for a moment that we gave ourselves), when it began
--       by our clock us ('' for now), 'bitmap' or 'sequence', highest reader
-- Returns: per category 1 read, 0 news came in between; then our time us
local call = redis.call
local categories, reader, is_sequence = tonumber(ARGV[1]), ARGV[2], ARGV[5] == 'sequence'
local DAY = 86400000000
local outcome = {}

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local since = tonumber(ARGV[4]) or now
if ARGV[3] ~= '' then
  since = math.min(now - ARGV[3], since)
elseif since > now then
  since = 0
end
-- What was published longer ago than a day is not remembered.
if since < now - DAY then since = 0 end

local readers = KEYS[2 * categories + 1]
if readers then
  local name = reader
  reader = call('HGET', readers, name)
  if not reader then
    reader = call('HLEN', readers)
    if reader > tonumber(ARGV[6]) then
      since = 0
    else
      call('HSET', readers, name, reader)
    end
  end
end

for category = 1, categories do
  local state, key = KEYS[2 * category - 1], KEYS[2 * category]
  local news = tonumber(call('GET', key) or 0)
  -- The clock was set back: from now on pages begin after this again.
  if news > now then call('SET', key, string.format('%.0f', now), 'KEEPTTL') end
  if news >= since then
    outcome[category] = 0
  else
    if is_sequence then
      local published = call('BITFIELD', state, 'GET', 'u32', 0)[1]
      call('BITFIELD', state, 'SET', 'u32', '#' .. reader + 1, published + 1)
    else
      call('SETBIT', state, reader, 1)
    end
    outcome[category] = 1
  end
end
outcome[categories + 1] = string.format('%.0f', now)
return outcome
