-- Reads the views of subjects in each of some minutes.
-- Guarantees: a view of a minute is read once, while the trending list moves it from one key of the minute to the other. A key
-- of another type is as a missing one.
-- KEYS: the two sorted sets of each minute. ARGV: subjects
-- Returns: per minute the views of each subject, nil for none; {} for a minute without any

-- Returns the views of each subject in one key; nil without the key.
local function views_in(key)
  if redis.call('EXISTS', key) == 0 then return nil end
  local views = redis.pcall('ZMSCORE', key, unpack(ARGV))
  if views.err then return nil end
  return views
end

local found = {}
for index = 1, #KEYS, 2 do
  local views, others = views_in(KEYS[index]), views_in(KEYS[index + 1])
  -- Mostly a minute has one of them, whose numbers go out as they are.
  if views and others then
    for number = 1, #ARGV do
      views[number] = (tonumber(views[number]) or 0) + (tonumber(others[number]) or 0)
    end
  end
  found[#found + 1] = views or others or {}
end
return found
