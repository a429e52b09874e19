-- Raises totals that fell behind SQL: an old snapshot was restored, or a replica that lagged took over.
-- Guarantees: a total is never lowered; one that lacks its base is left to settling.
-- KEYS: unbased, total of each subject. ARGV: id of each, SQL's count of each
-- Returns: number of totals raised
local unbased = KEYS[1]
local count = #KEYS - 1
local lifted = 0
for index = 1, count do
  local total, id, stored = KEYS[1 + index], ARGV[index], ARGV[count + index]
  local live = redis.call('GET', total)
  if live and tonumber(live) < tonumber(stored) and not redis.call('ZSCORE', unbased, id) then
    redis.call('SET', total, stored, 'KEEPTTL')
    lifted = lifted + 1
  end
end
return lifted
