-- Marks all threads, or those of one board, read for one reader up to a time, by one position.
-- Guarantees: as in mark_read_positions.lua. A board's position holds for the threads that were in the board at that time.
-- KEYS: when this Redis began to know publications, keys of read state that changed; positions of the reader; the list of
--       the board, if it is one
-- ARGV: how long a publication can be unread (µs), how long ago the page began, and when (see mark_read_positions.lua),
--       lifetime of positions (s), most positions of a reader, the position: '*' for all threads, or the name of a board
-- Returns: 1; 0 for a time of ours that lies in the future, and if this Redis has not begun
local call = redis.call
local began_key, changed, positions, list = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local kept_for, page_age, page_began = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local positions_life, most_positions, field = ARGV[4], tonumber(ARGV[5]), ARGV[6]
local MOST_FORMER = 20 -- of one board

-- since.lua
-- positions.lua
-- raise.lua

local function last_leaving()
  local last = 0
  for _, note in ipairs(call('ZRANGEBYSCORE', list, LEFT, LEFT)) do
    last = math.max(last, tonumber(string.sub(note, 2)))
  end
  return last
end

-- Removes former times of the board, so that another one finds a place.
local function forget_former()
  local names = {}
  local former = former_times_of(positions, field)
  for name in pairs(former) do names[#names + 1] = name end
  table.sort(names, function(one, other) return former[one] > former[other] end)
  for place, name in ipairs(names) do
    if place >= MOST_FORMER or former[name] < now - kept_for then call('HDEL', positions, name) end
  end
end

-- Of two times of a board the earlier one is kept if a thread has left the board since.
local function keep_earlier(time)
  local earlier = math.min(time, tonumber(call('HGET', positions, field) or 0))
  if earlier == 0 or last_leaving() < earlier then return end
  forget_former()
  local former = '@' .. text_of(earlier) .. ' ' .. string.sub(field, 2)
  raise(positions, {former, earlier})
end

if call('EXISTS', began_key) == 0 then return 0 end

local since = page_since()
if since == 0 then return 0 end
if field == ALL then
  -- All other positions are earlier, and say nothing any more.
  if since >= now then call('UNLINK', positions) end
else
  keep_earlier(since)
end
raise(positions, {field, since})
return 1
