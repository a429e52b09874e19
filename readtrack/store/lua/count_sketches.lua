-- Counts the visitors of sketches out of several partitions together. KEYS: two scratch keys. ARGV: sketches
-- Returns: the count
local call, all, one = redis.call, KEYS[1], KEYS[2]
for _, sketch in ipairs(ARGV) do
  call('SET', one, sketch)
  redis.pcall('PFMERGE', all, one)  -- skips bytes that are no sketch
end
local count = call('PFCOUNT', all)
call('DEL', all, one)
return count
