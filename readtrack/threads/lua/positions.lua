-- Included in the scripts of positions.
-- Takes: call; now (µs); kept_for, how long a publication can be unread (µs).
-- Gives: ALL, LATEST_BOARD, LAST_BOARD, LEFT, text_of, floor_of, count_since, stays_of, read_until.
-- A thread's publications are a sorted set: posts by the time (µs) of their publication, and before them the thread's
-- stays in boards, which have the scores 1, 2, …. '@BOARD' is a board that the thread is in since it is known,
-- '@SINCE- BOARD' one to which it was moved at that time, and '@SINCE-LEFT BOARD' one that it has left.
-- Positions of a reader are a hash: times (µs) by the key of a thread, by '@BOARD' for all threads that were in the board
-- then, and by ALL for all threads. What was published before such a time is read. LATEST_BOARD is the latest time of all
-- boards, so that most threads need not be asked for theirs. '@TIME BOARD' is a former time of a board, kept for the
-- threads that have left it since: their later times of it say nothing.
local ALL = '*'
local LATEST_BOARD = '@'
local LAST_BOARD = 100
local LEFT = 9007199254740991 -- score of the member '@TIME' of a board's list: when a thread last left the board

-- Redis would round a number.
local function text_of(time)
  return string.format('%.0f', time)
end

-- Returns the time before which all threads are read for the reader whose position for ALL is given.
local function floor_of(started_key, all)
  return math.max(now - kept_for, tonumber(call('GET', started_key) or 0), tonumber(all or 0))
end

-- Returns how many publications the thread has since that time, which is text.
local function count_since(news, time)
  return call('ZCOUNT', news, time, '+inf')
end

local function stay_of(entry)
  local since, left, board = string.match(entry, '^@(%d+)%-(%d*) (.*)$')
  if not since then return {board = entry, since = 0} end
  return {board = '@' .. board, since = tonumber(since), left = tonumber(left)}
end

-- Returns the boards that the thread is in, and those that it has left, which have `left`.
local function stays_of(news)
  local stays = {}
  for index, entry in ipairs(call('ZRANGEBYSCORE', news, '-inf', LAST_BOARD)) do stays[index] = stay_of(entry) end
  return stays
end

local board_times, former_times = {}, {}

local function time_of_board(positions, board)
  local name = positions .. board
  if not board_times[name] then board_times[name] = tonumber(call('HGET', positions, board) or 0) end
  return board_times[name]
end

-- Returns the former times of a board, by their names.
local function former_times_of(positions, board)
  if not former_times[positions] then
    local former = {}
    local content = call('HGETALL', positions)
    for index = 1, #content, 2 do
      local name = string.match(content[index], '^@%d+ (.*)$')
      if name then
        name = '@' .. name
        former[name] = former[name] or {}
        former[name][content[index]] = tonumber(content[index + 1])
      end
    end
    former_times[positions] = former
  end
  return former_times[positions][board] or {}
end

-- Returns the latest time of the board at which the thread was in it; 0 for none.
local function time_in_stay(positions, stay)
  local latest = time_of_board(positions, stay.board)
  if stay.left and latest >= stay.left then
    latest = 0
    for _, time in pairs(former_times_of(positions, stay.board)) do
      if time < stay.left then latest = math.max(latest, time) end
    end
  end
  return latest > stay.since and latest or 0
end

-- Returns the time before which a thread is read, by a time that holds for it and by the positions of its boards.
local function read_until(positions, news, time, latest_board)
  if tonumber(latest_board or 0) <= time then return time end
  for _, stay in ipairs(stays_of(news)) do time = math.max(time, time_in_stay(positions, stay)) end
  return time
end
