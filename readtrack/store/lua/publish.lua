-- Makes categories unread for everybody.
-- Guarantees: a page built before this cannot mark the category read afterwards (see record.lua).
-- KEYS: per category: bitmap, news. ARGV: life of the news in s. Returns: number of categories
local life = ARGV[1]
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
for key = 1, #KEYS, 2 do
  redis.call('UNLINK', KEYS[key])
  redis.call('SET', KEYS[key + 1], now, 'EX', life)
end
return #KEYS / 2
