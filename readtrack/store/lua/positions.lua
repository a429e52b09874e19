-- Included in the scripts of positions.
-- Takes: call; now (µs); kept_for, how long a publication can be unread (µs).
-- Gives: ALL, LATEST_BOARD, LAST_BOARD, text_of, floor_of, count_since, boards_of, read_until.
-- A thread's publications are a sorted set: posts by the time (µs) of their publication, and before them the thread's
-- boards, which have the scores 1, 2, …. Positions of a reader are a hash: times (µs) by the key of a thread, by a board
-- for all of its threads, and by ALL for all threads. What was published before such a time is read. LATEST_BOARD is the
-- latest time of all boards, so that most threads need not be asked for their boards.
local ALL = '*'
local LATEST_BOARD = '@'
local LAST_BOARD = 100

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

local function boards_of(news)
  return call('ZRANGEBYSCORE', news, '-inf', LAST_BOARD)
end

local board_times = {}

local function time_of_board(positions, board)
  local name = positions .. board
  if not board_times[name] then board_times[name] = tonumber(call('HGET', positions, board) or 0) end
  return board_times[name]
end

-- Returns the time before which a thread is read, by a time that holds for it and by the positions of its boards.
local function read_until(positions, news, time, latest_board)
  if tonumber(latest_board or 0) <= time then return time end
  for _, board in ipairs(boards_of(news)) do time = math.max(time, time_of_board(positions, board)) end
  return time
end
