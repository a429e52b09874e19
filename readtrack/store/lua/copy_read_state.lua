-- Copies the read state of categories, for SQL.
-- Guarantees: each copy, the time of its publication and the mark that it changed are of one moment. So are the readers
-- that SQL does not know yet, because SQL has to know whose each number in the copies is.
-- KEYS: keys of read state that changed, readers that SQL does not know yet; per category: state, published
-- ARGV: the most bytes of a state that is copied, the most bytes of all copies together, the most readers that are
--       returned (0 if the numbers are user ids)
-- Returns: names and numbers of the readers in turn; for the first categories, as many as the bytes allow, at least one:
--          state ('' for none, nothing for one with too many bytes), time of the last publication (µs, 0 for none), when
--          the state changed (µs, '' if SQL has it). No categories if there are more readers than that.
local call = redis.call
local changed, new_readers = KEYS[1], KEYS[2]
local most_bytes_of_state, most_bytes, most_readers = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local answers, bytes = {{}}, 0
if most_readers > 0 then
  answers[1] = call('ZRANGE', new_readers, 0, most_readers - 1, 'WITHSCORES')
  if call('ZCARD', new_readers) > most_readers then return answers end
end
for key = 3, #KEYS, 2 do
  local state, published = KEYS[key], KEYS[key + 1]
  local size = call('STRLEN', state)
  local copy = false
  if size <= most_bytes_of_state then
    bytes = bytes + size
    if bytes > most_bytes and #answers > 1 then break end
    copy = call('GET', state) or ''
  end
  answers[#answers + 1] = {copy, call('GET', published) or '0', call('ZSCORE', changed, state) or ''}
end
return answers
