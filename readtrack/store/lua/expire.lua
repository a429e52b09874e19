-- Lets keys expire. KEYS: the keys, which may be missing. ARGV: lifetime (s). Returns: the number of keys that existed
local existed = 0
for _, key in ipairs(KEYS) do
  existed = existed + redis.call('EXPIRE', key, ARGV[1])
end
return existed
