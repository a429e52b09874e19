-- Copies the read state of categories, for SQL.
-- Guarantees: each copy, the time of its publication and the mark that it changed are of one moment.
-- KEYS: keys of read state that changed; per category: state, published
-- ARGV: the most bytes of a state that is copied, the most bytes of all copies together
-- Returns: for the first categories, as many as the bytes allow, at least one: state ('' for none, nothing for one with
--          too many bytes), time of the last publication (µs, 0 for none), when the state changed (µs, '' if SQL has it)
local call = redis.call
local changed = KEYS[1]
local most_bytes_of_state, most_bytes = tonumber(ARGV[1]), tonumber(ARGV[2])

local copies, bytes = {}, 0
for key = 2, #KEYS, 2 do
  local state, published = KEYS[key], KEYS[key + 1]
  local size = call('STRLEN', state)
  local copy = false
  if size <= most_bytes_of_state then
    bytes = bytes + size
    if bytes > most_bytes and #copies > 0 then break end
    copy = call('GET', state) or ''
  end
  copies[#copies + 1] = {copy, call('GET', published) or '0', call('ZSCORE', changed, state) or ''}
end
return copies
