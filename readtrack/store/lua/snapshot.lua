-- Reads totals and numbers of unique visitors at one moment, leaving out totals that lack SQL's base.
-- KEYS: unbased; totals; sketches. ARGV: length of what stands before the id in a total's name
-- Returns: {totals that exist, totals (nil: missing or without base), visitors}
local call = redis.call
local count, start = (#KEYS - 1) / 2, ARGV[1] + 1
local totals = call('MGET', unpack(KEYS, 2, count + 1))
local visitors, found = {}, 0
local is_marked = call('EXISTS', KEYS[1]) == 1
local has_sketches = call('EXISTS', unpack(KEYS, count + 2)) > 0
for index = 1, count do
  visitors[index] = has_sketches and call('PFCOUNT', KEYS[count + 1 + index]) or 0
  if totals[index] then found = found + 1 end
  if is_marked and totals[index] and call('ZSCORE', KEYS[1], string.sub(KEYS[index + 1], start)) then
    totals[index] = false
  end
end
return {found, totals, visitors}
