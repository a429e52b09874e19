-- Tells for one reader in which boards a thread is unread.
-- Guarantees: a board with a dot has an unread thread in it: whatever its list says, the thread itself is asked. A thread
-- that is not in the list, because many others were published to since, gives the board no dot. Writes nothing.
-- KEYS: when this Redis began to know publications; when everybody has read all; positions of the reader; per board: its list of threads
-- ARGV: how long a publication can be unread (µs), 1 for a reader who can have positions, what the keys of the threads'
--       publications begin with; per board: its name in positions
-- Returns: 1 or 0 for each board. Nothing if this Redis has not begun
local call = redis.call
local began_key, started_key, positions = KEYS[1], KEYS[2], KEYS[3]
local kept_for, can_read, news_prefix = tonumber(ARGV[1]), ARGV[2] == '1', ARGV[3]
local KEYS_BEFORE_BOARDS, ARGUMENTS_BEFORE_BOARDS = 3, 3

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- positions.lua

local function is_in(board, news)
  for _, stay in ipairs(stays_of(news)) do
    if stay.board == board and not stay.left then return true end
  end
  return false
end

local function is_unread(board, list, floor, latest_board)
  -- A thread that was moved here later is in the list by that time.
  local marked = math.max(floor, tonumber(call('HGET', positions, board) or 0))
  local threads = call('ZREVRANGEBYSCORE', list, '(' .. text_of(LEFT), text_of(marked))
  if #threads == 0 then return false end
  local times = call('HMGET', positions, unpack(threads))
  for index, thread in ipairs(threads) do
    local news = news_prefix .. thread
    local since = math.max(floor, tonumber(times[index] or 0))
    if count_since(news, text_of(since)) > 0 and is_in(board, news) then
      local read_before = read_until(positions, news, since, latest_board)
      if count_since(news, text_of(read_before)) > 0 then return true end
    end
  end
  return false
end

if call('EXISTS', began_key) == 0 then return false end

local times = call('HMGET', positions, ALL, LATEST_BOARD)
local floor, latest_board = floor_of(started_key, times[1]), times[2]
local outcomes = {}
for board = 1, #KEYS - KEYS_BEFORE_BOARDS do
  local list, name = KEYS[KEYS_BEFORE_BOARDS + board], ARGV[ARGUMENTS_BEFORE_BOARDS + board]
  outcomes[board] = can_read and is_unread(name, list, floor, latest_board) and 1 or 0
end
return outcomes
