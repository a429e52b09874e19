-- Included at the end of mark_read_bitmap.lua and mark_read_sequence.lua.
-- Takes: call; mark(state, reader), which marks one category read for a reader's number.
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
--       highest reader number, how long the time of a publication is kept (µs);
--       for a reader given by name: number of hashes that may have its number, most readers in them, and when the
--       first of them ends (s since 1970, '' for never)
-- Returns: per category 1 read, 0 published in between; then our time (µs)
local began_key = KEYS[1]
local categories, reader = tonumber(ARGV[1]), ARGV[2]
local page_age, page_began = tonumber(ARGV[3]), tonumber(ARGV[4])
local highest, published_for = tonumber(ARGV[5]), tonumber(ARGV[6])
local own_hashes, most_readers, hash_ends = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local next_ordinal = 2 * categories + 2 -- place of the key, and behind it those of the hashes
local first_hash = next_ordinal + 1

-- since.lua

-- Returns the time (µs) since which a publication keeps a category unread; 0 if any publication does.
local function find_since()
  local since = page_since()
  local began = tonumber(call('GET', began_key) or now)
  if began >= now then -- it is missing, or the clock was set back
    began = now
    call('SET', began_key, string.format('%.0f', now))
  end
  -- Publications before that are not known, or not any more.
  if since < began or since < now - published_for then return 0 end
  return since
end

-- Returns the number of the reader with that name, and gives a new reader the next one; nil if there is none left.
local function find_number(name)
  local last_own_hash = first_hash + own_hashes - 1
  for key = first_hash, last_own_hash do
    local number = call('HGET', KEYS[key], name)
    if number then return number end
  end
  local given, given_in_own = 0, 0
  for key = first_hash, #KEYS do
    local readers = call('HLEN', KEYS[key])
    given = given + readers
    if key <= last_own_hash then given_in_own = given_in_own + readers end
  end
  -- The next ordinal outlives an eviction of the readers: a number of theirs would be read as what they had read.
  local number = math.max(given, tonumber(call('GET', KEYS[next_ordinal]) or 0))
  if number > highest or given_in_own >= most_readers then return nil end
  call('HSET', KEYS[first_hash], name, number)
  if hash_ends ~= '' then call('EXPIREAT', KEYS[first_hash], hash_ends) end
  call('SET', KEYS[next_ordinal], number + 1)
  return number
end

local since = find_since()
if own_hashes then
  reader = find_number(reader)
  if not reader then since = 0 end
end

local outcomes = {}
for category = 1, categories do
  local state, published_key = KEYS[2 * category], KEYS[2 * category + 1]
  local published = tonumber(call('GET', published_key) or 0)
  -- The clock was set back: pages from now on begin after this again.
  if published > now then call('SET', published_key, string.format('%.0f', now), 'KEEPTTL') end
  if published >= since then
    outcomes[category] = 0
  else
    mark(state, reader)
    outcomes[category] = 1
  end
end
outcomes[categories + 1] = string.format('%.0f', now)
return outcomes
