-- Adds SQL's base to totals that lack it, or merges the two by max.
-- Guarantees: whoever removes the mark adds the base, so it is added once, however many flushers try.
-- KEYS: unbased, total of each subject. ARGV: marks older than this (us) are merged by max, id of each, base of each
-- Returns: number of totals settled
local unbased, before = KEYS[1], tonumber(ARGV[1])
local count = #KEYS - 1
local settled = 0
for index = 1, count do
  local total, id, base = KEYS[1 + index], ARGV[1 + index], ARGV[1 + count + index]
  local mark = redis.call('ZSCORE', unbased, id)
  if mark then
    redis.call('ZREM', unbased, id)
    if tonumber(mark) >= before then
      if base ~= '0' then redis.call('INCRBY', total, base) end
    elseif tonumber(base) > tonumber(redis.call('GET', total) or 0) then
      -- The mark comes out of an old snapshot: SQL may hold these very views already.
      redis.call('SET', total, base)
    end
    settled = settled + 1
  end
end
return settled
