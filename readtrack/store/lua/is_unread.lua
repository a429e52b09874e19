-- Reads if many categories have something new to one reader.
-- Guarantees: a page that comes after this one can mark categories read (see mark_read.lua).
-- KEYS: when this Redis began to know publications; bitmaps[, readers, if the reader is given by name]
-- ARGV: reader, number of bitmaps
-- Returns: for each 1 (something is new) or 0
local call = redis.call
local reader, count = ARGV[1], tonumber(ARGV[2])
local found = {}
if call('EXISTS', KEYS[1]) == 0 then
  local time = call('TIME')
  call('SET', KEYS[1], string.format('%.0f', time[1] * 1000000 + time[2]))
end
if #KEYS > count + 1 then reader = call('HGET', KEYS[#KEYS], reader) end
for index = 1, count do
  -- A reader without a number has read nothing.
  found[index] = reader and 1 - call('GETBIT', KEYS[index + 1], reader) or 1
end
return found
