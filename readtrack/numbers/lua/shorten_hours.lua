-- Lets hours of subjects go that SQL has stored.
-- Guarantees: the running hour, which is not over, stays as long as it would have. So do the hours of the day before it, and
-- hours that began after the flush. Names of hours are digits, as many in each, so they compare as text.
-- Passes over keys of another type.
-- KEYS: the hours of each subject, which may be missing
-- ARGV: the oldest hour that stays; the hour in which the flush began; a day (s)
-- Returns: number of hours that went
local call = redis.call
local oldest, running, day = ARGV[1], ARGV[2], ARGV[3]
local removed = 0
for _, hours in ipairs(KEYS) do
  local names = redis.pcall('HKEYS', hours)  -- of a key of another type an error, which has no items
  local has_running = false
  for _, hour in ipairs(names) do
    if hour < oldest then removed = removed + call('HDEL', hours, hour) end
    has_running = has_running or hour >= running
  end
  if #names > 0 and not has_running then call('EXPIRE', hours, day) end
end
return removed
