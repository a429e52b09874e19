-- Reads one reader's bit of many categories.
-- KEYS: bitmaps. ARGV: reader. Returns: 1 (has read) or 0 for each
local reader = ARGV[1]
local bits = {}
for index, bitmap in ipairs(KEYS) do
  bits[index] = redis.call('GETBIT', bitmap, reader)
end
return bits
