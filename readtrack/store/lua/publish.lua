-- Included at the end of publish_bitmap.lua and publish_sequence.lua.
-- Takes: call; publish(category), which makes one category unread. A category has: state and sent
--   (keys), items, author (a reader's number; nil for none, or for one without a number), is_own, token, and now (µs).
-- Makes categories unread for everybody but an author who had read everything before.
-- Guarantees: a page that was built before this cannot mark the category read afterwards (see mark_read.lua). Read state
-- that was kept under other settings is removed too, so that switching back cannot bring back reads that are out of date.
-- A publication that is sent again with its token within its lifetime raises no number. While the read state of this
-- Redis is not restored, nothing is published.
-- KEYS: when this Redis began to know publications, keys of read state that changed;
--       per category: state, published, sent, states of the other kinds; at the end, for authors given by name: readers
-- ARGV: number of categories, number of keys per category, how long the token of a publication is kept (s), channel of
--       events or '';
--       per category: number of items, author or '', 1 if the category is the author's own text, token or ''
-- Returns: our time (µs), 0 if this Redis has not begun
local SHARED_KEYS, SHARED_ARGUMENTS, ARGUMENTS_PER_CATEGORY = 2, 4, 4
local began_key, changed = KEYS[1], KEYS[2]
local categories, keys_per_category = tonumber(ARGV[1]), tonumber(ARGV[2])
local channel = ARGV[4]
local readers = KEYS[SHARED_KEYS + categories * keys_per_category + 1]

local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
if call('EXISTS', began_key) == 0 then return '0' end

local function number_of(author)
  if author == '' then return nil end
  if not readers then return author end
  return call('HGET', readers, author) or nil
end

for index = 0, categories - 1 do
  local first_key = SHARED_KEYS + index * keys_per_category + 1
  local last_key = first_key + keys_per_category - 1
  local first_argument = SHARED_ARGUMENTS + index * ARGUMENTS_PER_CATEGORY + 1
  local items, author, is_own, token = unpack(ARGV, first_argument, first_argument + 3)
  local state, published, sent = unpack(KEYS, first_key, first_key + 2)
  call('UNLINK', unpack(KEYS, first_key + 3, last_key))
  call('SET', published, now)
  call('ZADD', changed, now, state)
  publish({
    state = state,
    sent = sent,
    items = items,
    author = number_of(author),
    is_own = is_own == '1',
    token = token,
    now = now,
  })
  -- An event that is refused, for want of a right, must not keep the category from being unread.
  if channel ~= '' then redis.pcall('PUBLISH', channel, published .. ' ' .. now) end
end
return now
