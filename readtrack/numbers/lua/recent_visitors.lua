-- Counts the visitors of sketches of one partition together.
-- KEYS: scratch key, sketches. ARGV: 1 if there are other partitions, whose sketches are merged with these
-- Returns: the count, or with other partitions the merged sketch
local call, all = redis.call, KEYS[1]
if ARGV[1] == '0' then return call('PFCOUNT', unpack(KEYS, 2)) end
call('PFMERGE', unpack(KEYS))
local sketch = call('GET', all)
call('DEL', all)
return sketch
