-- Included in the scripts that write positions, behind positions.lua.
-- Takes: call; ALL, LATEST_BOARD, text_of; now (µs); changed, the key in which it notes what changed, or nil;
--   positions_life (s), most_positions.
-- Gives: raise, which raises positions of a reader: a list of fields and times in turn. They never fall.
local SPARE = 25 -- a full hash loses so many positions at once, because it is looked through each time

-- Lets the oldest positions go. Everything before them then counts as read, so that no dot comes on.
local function shorten(positions)
  local content = call('HGETALL', positions)
  local entries, all = {}, 0
  for index = 1, #content, 2 do
    local field, time = content[index], tonumber(content[index + 1])
    if field == ALL then
      all = time
    elseif field ~= LATEST_BOARD then
      entries[#entries + 1] = {field = field, time = time}
    end
  end
  table.sort(entries, function(one, other) return one.time < other.time end)
  local last_surplus = math.min(#entries, #entries + SPARE - most_positions)
  if last_surplus > 0 then all = math.max(all, entries[last_surplus].time) end
  local surplus = {}
  for _, entry in ipairs(entries) do
    if entry.time <= all then surplus[#surplus + 1] = entry.field end
  end
  if #surplus > 0 then call('HDEL', positions, unpack(surplus)) end
  call('HSET', positions, ALL, text_of(all))
end

local function raise(positions, fields_and_times)
  local fields, values = {}, {}
  for index = 1, #fields_and_times, 2 do fields[#fields + 1] = fields_and_times[index] end
  if #fields == 0 then return end
  local latest_board = tonumber(call('HGET', positions, LATEST_BOARD) or 0)
  local latest_board_before = latest_board
  local present = call('HMGET', positions, ALL, unpack(fields))
  local all = tonumber(present[1] or 0)
  for index, field in ipairs(fields) do
    local time = tonumber(fields_and_times[2 * index])
    if time > math.max(all, tonumber(present[index + 1] or 0)) then
      values[#values + 1] = field
      values[#values + 1] = text_of(time)
      if string.sub(field, 1, 1) == LATEST_BOARD then latest_board = math.max(latest_board, time) end
    end
  end
  if #values == 0 then return end
  if latest_board > latest_board_before then
    values[#values + 1] = LATEST_BOARD
    values[#values + 1] = text_of(latest_board)
  end
  call('HSET', positions, unpack(values))
  call('EXPIRE', positions, positions_life)
  if call('HLEN', positions) > most_positions then shorten(positions) end
  if changed then call('ZADD', changed, text_of(now), positions) end
end
