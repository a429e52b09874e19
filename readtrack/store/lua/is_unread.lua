-- Reads if many categories have something new to one reader.
-- KEYS: bitmaps[, readers, if the reader is given by name]. ARGV: reader, number of bitmaps
-- Returns: for each 1 (something is new) or 0
local reader, count = ARGV[1], tonumber(ARGV[2])
local found = {}
if #KEYS > count then reader = redis.call('HGET', KEYS[#KEYS], reader) end
for index = 1, count do
  -- A reader without a number has read nothing.
  found[index] = reader and 1 - redis.call('GETBIT', KEYS[index], reader) or 1
end
return found
