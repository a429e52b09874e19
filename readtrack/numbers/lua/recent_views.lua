-- Sums the views of some minutes. A key of another type is as a missing one.
-- KEYS: sorted sets of views by subject. ARGV: 1 if subjects are named, 0 if models are; the names
-- Returns: the number of views of what is named
local wanted, views = {}, 0
for index = 2, #ARGV do wanted[ARGV[index]] = true end
for _, bucket in ipairs(KEYS) do
  local found = redis.pcall('ZRANGE', bucket, 0, -1, 'WITHSCORES')
  for index = 1, #found, 2 do
    local name = ARGV[1] == '1' and found[index] or string.match(found[index], '^[^:]*')
    if wanted[name] then views = views + tonumber(found[index + 1]) end
  end
end
return views
