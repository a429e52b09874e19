-- Counts the unique visitors of each subject in the last days, from a sketch for each day.
-- Guarantees: days are merged at most once in the lifetime of a merged sketch, and losing a merged sketch loses nothing.
-- KEYS: per subject: merged sketch, sketch of each day. ARGV: number of days, lifetime of a merged sketch (s)
-- Returns: the count of each subject
local days, life = tonumber(ARGV[1]), ARGV[2]
local counts = {}
for key = 1, #KEYS, days + 1 do
  local sketch = KEYS[key]
  if redis.call('EXISTS', sketch) == 0 then
    redis.call('PFMERGE', sketch, unpack(KEYS, key + 1, key + days))
    redis.call('EXPIRE', sketch, life)
  end
  counts[#counts + 1] = redis.call('PFCOUNT', sketch)
end
return counts
