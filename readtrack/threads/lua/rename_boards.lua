-- Renames boards in keys of positions: among the positions of readers, and in threads' publications.
-- Guarantees: of a board's two positions the later one stays, so the same may be done again.
-- KEYS: keys of read state that changed; positions of readers, publications of threads
-- ARGV: the name before, the name after: of one board, or of all boards of a model
-- Returns: number of keys that had the name before
local call = redis.call
local changed = KEYS[1]
local before, after = ARGV[1], ARGV[2]

local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])

-- Returns nil for a member that keeps its name.
local function renamed(member)
  local times, board = string.match(member, '^(@%d+%-?%d* )(.*)$')
  if not times then
    times, board = string.match(member, '^(@)(.*)$')
  end
  if board == before then return times .. after end
  local beginning = before .. ':'
  if not board or string.sub(board, 1, #beginning) ~= beginning then return nil end
  return times .. after .. ':' .. string.sub(board, #beginning + 1)
end

local function rename_position(positions, board, new_board, time)
  local present = call('HGET', positions, new_board)
  if tonumber(time) > tonumber(present or 0) then call('HSET', positions, new_board, time) end
  call('HDEL', positions, board)
end

local function rename_in_news(news, board, new_board, number)
  call('ZADD', news, number, new_board)
  call('ZREM', news, board)
end

local renamed_keys = 0
for index = 2, #KEYS do
  local key = KEYS[index]
  local is_of_reader = call('TYPE', key).ok == 'hash'
  local content = is_of_reader and call('HGETALL', key) or call('ZRANGE', key, 0, -1, 'WITHSCORES')
  local rename = is_of_reader and rename_position or rename_in_news
  local has_name = false
  for member = 1, #content, 2 do
    local new_name = renamed(content[member])
    if new_name then
      rename(key, content[member], new_name, content[member + 1])
      has_name = true
    end
  end
  if has_name then
    call('ZADD', changed, now, key)
    renamed_keys = renamed_keys + 1
  end
end
return renamed_keys
