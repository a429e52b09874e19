-- Reads one reader's bit of many categories.
-- KEYS: bitmaps[, readers, if the reader is given by name]. ARGV: reader, number of bitmaps
-- Returns: for each 1 (has read) or 0
local reader, count = ARGV[1], tonumber(ARGV[2])
local bits = {}
if #KEYS > count then reader = redis.call('HGET', KEYS[#KEYS], reader) end
for index = 1, count do
  -- A reader without a number has read nothing.
  bits[index] = reader and redis.call('GETBIT', KEYS[index], reader) or 0
end
return bits
