-- Marks categories read for one reader.
-- Guarantees: a category that was published to since the page began stays unread. The page began at the earlier of two
-- times: what the web server computed from our last answer, and now minus the time that the page took. So neither a hit
-- that was delayed nor a step of our clock hides a publication. A time of ours that lies in the future was taken before
-- our clock was set back, and proves nothing. A Redis that was emptied since the page began cannot know what was
-- published meanwhile, so such a page marks nothing. A reader given by name gets a number once.
-- KEYS: when this Redis began to know publications;
--       per category: state, published; at the end, for a reader given by name: next ordinal, hashes that may have
--       its number, and first the one for a new reader; other hashes of readers that share the next ordinal
-- ARGV: number of categories, reader,
--       how long ago the page began (µs; '' if the next argument is a time of ours),
--       when the page began by our clock (µs; '' for now),
--       'bitmap' or 'sequence', highest reader number, how long the time of a publication is kept (µs);
--       for a reader given by name: number of hashes that may have its number, most readers in them, and when the
--       first of them ends (s since 1970, '' for never)
-- Returns: per category 1 read, 0 published in between; then our time (µs)
local call = redis.call
local categories, reader, is_sequence = tonumber(ARGV[1]), ARGV[2], ARGV[5] == 'sequence'
local highest, published_for = tonumber(ARGV[6]), tonumber(ARGV[7])
local outcome = {}

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local since = tonumber(ARGV[4]) or now
if ARGV[3] ~= '' then
  since = math.min(now - ARGV[3], since)
elseif since > now then
  since = 0
end
local began = tonumber(call('GET', KEYS[1]) or now)
if began >= now then  -- it is missing, or the clock was set back
  began = now
  call('SET', KEYS[1], string.format('%.0f', now))
end
-- Publications before that are not known, or not any more.
if since < began or since < now - published_for then since = 0 end

local following, first = KEYS[2 * categories + 2], 2 * categories + 3
if following then
  local name, last, most, ends = reader, first + ARGV[8] - 1, tonumber(ARGV[9]), ARGV[10]
  reader = nil
  for key = first, last do reader = reader or call('HGET', KEYS[key], name) end
  if not reader then
    local given, known = 0, 0
    for key = first, #KEYS do
      given = given + call('HLEN', KEYS[key])
      if key <= last then known = given end
    end
    -- The next ordinal outlives an eviction of the readers: a number of theirs would be read as what they had read.
    reader = math.max(given, tonumber(call('GET', following) or 0))
    if reader > highest or known >= most then
      since = 0
    else
      call('HSET', KEYS[first], name, reader)
      if ends ~= '' then call('EXPIREAT', KEYS[first], ends) end
      call('SET', following, reader + 1)
    end
  end
end

for category = 1, categories do
  local state, key = KEYS[2 * category], KEYS[2 * category + 1]
  local published = tonumber(call('GET', key) or 0)
  -- The clock was set back: pages from now on begin after this again.
  if published > now then call('SET', key, string.format('%.0f', now), 'KEEPTTL') end
  if published >= since then
    outcome[category] = 0
  else
    if is_sequence then
      local number = call('BITFIELD', state, 'GET', 'u32', 0)[1]
      call('BITFIELD', state, 'SET', 'u32', '#' .. reader + 1, number + 1)
    else
      call('SETBIT', state, reader, 1)
    end
    outcome[category] = 1
  end
end
outcome[categories + 1] = string.format('%.0f', now)
return outcome
