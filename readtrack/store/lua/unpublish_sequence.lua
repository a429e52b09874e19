-- Takes publications of a post back.
-- Guarantees: a reader who has not read the publication has one less that is new; for one who has, nothing changes.
-- What was published longer ago than tokens are kept, or together with other posts, stays published.
-- KEYS: keys of read state that changed; per category: state, sent
-- ARGV: most bytes of a state, because all of it is looked through; beginning of the tokens of the post
-- Returns: number of publications taken back
local call = redis.call
local most_bytes, start = tonumber(ARGV[1]), ARGV[2]
local SLOT = 4
local changed = KEYS[1]
local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])

local function items_of(entry)
  return tonumber(string.match(entry, ':(%d+)$') or 1)
end

-- `place` is the number of the publication among all of the category.
local function take_back(state, published, place)
  local content = call('GET', state)
  for first = SLOT + 1, #content - SLOT + 1, SLOT do
    local seen = struct.unpack('>I4', content, first)
    if seen > place then call('BITFIELD', state, 'SET', 'u32', 8 * (first - 1), seen - 1) end
  end
  call('BITFIELD', state, 'SET', 'u32', 0, published - 1)
end

local taken = 0
for index = 2, #KEYS, 2 do
  local state, sent = KEYS[index], KEYS[index + 1]
  local later = 0
  for _, entry in ipairs(call('ZREVRANGE', sent, 0, -1)) do
    local published = call('BITFIELD', state, 'GET', 'u32', 0)[1]
    local is_of_post = string.sub(entry, 1, #start) == start and items_of(entry) == 1
    if is_of_post and published > later and call('STRLEN', state) <= most_bytes then
      take_back(state, published, published - later)
      call('ZREM', sent, entry)
      call('ZADD', changed, now, state)
      taken = taken + 1
    else
      later = later + items_of(entry)
    end
  end
end
return taken
