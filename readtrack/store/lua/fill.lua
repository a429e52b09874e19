-- Included at the end of fill_bitmap.lua and fill_sequence.lua.
-- Takes: call; fill(state), which marks one category read for all readers.
-- Marks categories read for every reader up to a number.
-- Guarantees: a category that was published to since `as_of` stays as it is.
-- KEYS: keys of read state that changed; per category: state, published
-- ARGV: highest number of a reader, as_of (µs)
-- Returns: number of categories marked
local changed, as_of = KEYS[1], tonumber(ARGV[2])
local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
local marked = 0
for key = 2, #KEYS, 2 do
  local state, published_key = KEYS[key], KEYS[key + 1]
  local published = tonumber(call('GET', published_key) or 0)
  if published < as_of then
    fill(state)
    call('ZADD', changed, now, state)
    marked = marked + 1
  end
end
return marked
