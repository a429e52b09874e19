-- Reads the head of a trending list, of one model or of all.
-- KEYS: list. ARGV: limit, beginning of the subjects wanted, number of members to look at, at most
-- Returns: nil if there is no list, or a key of another type, which trend.lua replaces; else member, score, member, score, ...
local list, limit, start, most = KEYS[1], tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local STEP = 500
local members = redis.pcall('ZCARD', list)
if members == 0 or type(members) ~= 'number' then return nil end

local found = {}
for offset = 0, most - 1, STEP do
  local part = redis.call('ZREVRANGE', list, offset, offset + STEP - 1, 'WITHSCORES')
  for index = 1, #part, 2 do
    if #found >= 2 * limit then return found end
    if part[index] ~= '' and string.sub(part[index], 1, #start) == start then
      found[#found + 1], found[#found + 2] = part[index], part[index + 1]
    end
  end
  if #part < 2 * STEP then break end
end
return found
