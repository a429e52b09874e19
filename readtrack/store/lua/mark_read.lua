-- Included at the end of mark_read_bitmap.lua and mark_read_sequence.lua.
-- Takes: call; mark(state, reader), which marks one category read for a reader's number, and returns true if that changed
--   anything.
-- Marks categories read for one reader.
-- Guarantees: a category that was published to since the page began stays unread. The page began at the earlier of two
-- times: what the web server computed from our last answer, and now minus the time that the page took. So neither a hit
-- that was delayed nor a step of our clock hides a publication. A time of ours that lies in the future was taken before
-- our clock was set back, and proves nothing. A Redis that was emptied since the page began cannot know what was
-- published meanwhile, so such a page marks nothing; and while its read state is not restored, nothing is marked at all.
-- A reader given by name gets a number once. What changes is noted, so that SQL gets a copy.
-- KEYS: when this Redis began to know publications, keys of read state that changed;
--       per category: state, published; at the end, for a reader given by name: readers that SQL does not know yet,
--       next ordinal, hashes that may have its number, and first the one for a new reader; other hashes of readers that share the next ordinal
-- ARGV: number of categories, reader,
--       how long ago the page began (µs; '' if the next argument is a time of ours),
--       when the page began by our clock (µs; '' for now),
--       highest reader number;
--       for a reader given by name: number of hashes that may have its number, most readers in them, and when the
--       first of them ends (s since 1970, '' for never), 1 if SQL is to know the reader
-- Returns: per category 1 read, 0 published in between; then our time (µs). Nothing if this Redis has not begun.
local began_key, changed = KEYS[1], KEYS[2]
local categories, reader = tonumber(ARGV[1]), ARGV[2]
local page_age, page_began = tonumber(ARGV[3]), tonumber(ARGV[4])
local highest = tonumber(ARGV[5])
local own_hashes, most_readers, hash_ends = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local is_for_sql = ARGV[9] == '1'
local new_readers = 2 * categories + 3 -- places of keys
local next_ordinal = new_readers + 1
local first_hash = new_readers + 2

-- since.lua

-- Returns the time (µs) since which a publication keeps a category unread; 0 if any publication does.
local function find_since()
  local since = page_since()
  local began = tonumber(call('GET', began_key))
  if began >= now then -- the clock was set back
    began = now
    call('SET', began_key, string.format('%.0f', now))
  end
  if since < began then return 0 end -- publications before that are not known
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
  if is_for_sql then call('ZADD', KEYS[new_readers], number, name) end
  if hash_ends ~= '' then call('EXPIREAT', KEYS[first_hash], hash_ends) end
  call('SET', KEYS[next_ordinal], number + 1)
  return number
end

if call('EXISTS', began_key) == 0 then return false end

local since = find_since()
if own_hashes then
  reader = find_number(reader)
  if not reader then since = 0 end
end

local outcomes = {}
for category = 1, categories do
  local state, published_key = KEYS[2 * category + 1], KEYS[2 * category + 2]
  local published = tonumber(call('GET', published_key) or 0)
  -- The clock was set back: pages from now on begin after this again.
  if published > now then call('SET', published_key, string.format('%.0f', now)) end
  if published >= since then
    outcomes[category] = 0
  else
    if mark(state, reader) then call('ZADD', changed, string.format('%.0f', now), state) end
    outcomes[category] = 1
  end
end
outcomes[categories + 1] = string.format('%.0f', now)
return outcomes
