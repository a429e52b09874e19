-- Reads the totals of subjects and their views of some hours, all of one moment.
-- Guarantees: a key of another type is as a missing one, and stops no other.
-- KEYS: total and hours of each subject. ARGV: the hours
-- Returns: per subject {total, views of each hour}; nil for what is missing
local found = {}
for index = 1, #KEYS, 2 do
  local total = redis.pcall('GET', KEYS[index])
  local views = redis.pcall('HMGET', KEYS[index + 1], unpack(ARGV))
  -- An error is a table with `err`.
  local row = {type(total) ~= 'table' and total}
  for number = 1, #ARGV do row[number + 1] = views[number] or false end
  found[#found + 1] = row
end
return found
