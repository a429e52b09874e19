-- Counts the unique visitors of many subjects in the last days, from a sketch for each day.
-- Guarantees: days are merged at most once in the lifetime of a merged sketch, and losing a merged sketch loses nothing.
-- KEYS: per subject: merged sketch, sketch of each day
-- ARGV: number of days, lifetime of a merged sketch (s), 1 to count all subjects together
-- Returns: the count of each subject, or one for all
local days, life, is_together = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'
local counts, merged = {}, {}
for key = 1, #KEYS, days + 1 do
  local sketch = KEYS[key]
  if redis.call('EXISTS', sketch) == 0 then
    redis.call('PFMERGE', sketch, unpack(KEYS, key + 1, key + days))
    redis.call('EXPIRE', sketch, life)
  end
  merged[#merged + 1] = sketch
  if not is_together then counts[#counts + 1] = redis.call('PFCOUNT', sketch) end
end
return is_together and {redis.call('PFCOUNT', unpack(merged))} or counts
