-- Counts what is new to one reader in many categories.
-- Guarantees: a page that comes after this one can mark categories read (see mark_read.lua).
-- KEYS: when this Redis began to know publications; state of each category; for a reader given by
--       name: the hashes that may have its number
-- ARGV: 'bitmap' or 'sequence', reader, number of categories, most readers in these hashes ('' for any number)
-- Returns: the number for each category; at least 1 if the reader has never opened it, and at most 1 with 'bitmap';
--          0 for a reader who can get no number, and so could never put the dot out
local call = redis.call
local is_sequence, reader, count = ARGV[1] == 'sequence', ARGV[2], tonumber(ARGV[3])
local counts = {}
if call('EXISTS', KEYS[1]) == 0 then
  local time = call('TIME')
  call('SET', KEYS[1], string.format('%.0f', time[1] * 1000000 + time[2]))
end
-- A reader without a number has read nothing.
if #KEYS > count + 1 then
  local name, known, most = reader, 0, tonumber(ARGV[4])
  reader = nil
  for key = count + 2, #KEYS do reader = reader or call('HGET', KEYS[key], name) end
  for key = count + 2, #KEYS do
    if most and not reader then known = known + call('HLEN', KEYS[key]) end
  end
  if most and not reader and known >= most then
    for index = 1, count do counts[index] = 0 end
    return counts
  end
end
for index = 1, count do
  local key = KEYS[index + 1]
  if not is_sequence then
    counts[index] = reader and 1 - call('GETBIT', key, reader) or 1
  else
    local published = call('BITFIELD', key, 'GET', 'u32', 0)[1]
    local seen = reader and call('BITFIELD', key, 'GET', 'u32', '#' .. reader + 1)[1] or 0
    counts[index] = seen > 0 and published + 1 - seen or math.max(published, 1)
  end
end
return counts
