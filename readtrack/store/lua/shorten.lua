-- Shortens the life of strings that would live longer. KEYS: strings. ARGV: lifetime (ms)
-- Returns: number of strings shortened
local shortened = 0
for _, key in ipairs(KEYS) do
  if redis.call('PTTL', key) > tonumber(ARGV[1]) then shortened = shortened + redis.call('PEXPIRE', key, ARGV[1]) end
end
return shortened
