-- Reads the totals that are settled, at one moment.
-- KEYS: unsettled, total of each subject. ARGV: length of what comes before the subject in the name of a total
-- A key of another type is as a missing one.
-- Returns: {number of totals that exist, totals (nil: missing or unsettled)}
local start = ARGV[1] + 1
local totals = redis.call('MGET', unpack(KEYS, 2))
local number_of_marks = tonumber(redis.pcall('ZCOUNT', KEYS[1], '-inf', '(+inf')) or 0
local is_marked = number_of_marks > 0
local found = 0
for index, total in ipairs(totals) do
  if total then found = found + 1 end
  if is_marked and total and redis.call('ZSCORE', KEYS[1], string.sub(KEYS[index + 1], start)) then
    totals[index] = false
  end
end
return {found, totals}
