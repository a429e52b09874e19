-- Included in the scripts that place threads in boards, behind positions.lua.
-- Takes: call; LAST_BOARD, LEFT, text_of, stays_of; now, kept_for (µs); board_prefix, what the keys of boards' lists begin
--   with; news_life (s); most_threads of a board's list.
-- Gives: place, which enters a thread into the lists of its boards; move_to, which notes the boards that a thread is in
--   from now on; set_stays, which replaces all stays of a thread by their texts.
local NOWHERE = '@-' -- stands for no board
local MOST_STAYS = 20

local function list_of(board)
  return board_prefix .. string.sub(board, 2) -- without the @
end

local function shorten_list(list)
  local notes = call('ZCOUNT', list, LEFT, LEFT)
  call('ZREMRANGEBYRANK', list, 0, -(most_threads + notes + 1))
  call('EXPIRE', list, news_life)
end

-- Notes when a thread left the board, so that mark_all_positions.lua keeps earlier times of it.
local function note_leaving(board, left)
  if board == NOWHERE then return end
  local list = list_of(board)
  for _, note in ipairs(call('ZRANGEBYSCORE', list, LEFT, LEFT)) do
    left = math.max(left, tonumber(string.sub(note, 2)))
    call('ZREM', list, note)
  end
  call('ZADD', list, text_of(LEFT), '@' .. text_of(left))
  shorten_list(list)
end

-- The list of a board that the thread has left still has it, but unread_boards.lua asks the thread for its boards. A
-- thread that was moved is entered by that time, if it is later: for whoever had marked the board, it may be unread.
local function place(news, key, time)
  for _, stay in ipairs(stays_of(news)) do
    if stay.left then
      note_leaving(stay.board, stay.left)
    elseif stay.board ~= NOWHERE then
      local list = list_of(stay.board)
      call('ZADD', list, 'GT', text_of(math.max(time, stay.since)), key)
      shorten_list(list)
    end
  end
end

local function set_stays(news, texts)
  call('ZREMRANGEBYSCORE', news, '-inf', LAST_BOARD)
  for number, text in ipairs(texts) do call('ZADD', news, number, text) end
end

local function text_of_stay(stay)
  if stay.since == 0 and not stay.left then return stay.board end
  local left = stay.left and text_of(stay.left) or ''
  return '@' .. text_of(stay.since) .. '-' .. left .. ' ' .. string.sub(stay.board, 2)
end

local function move_to(news, boards)
  local present, past, texts = {}, {}, {}
  local stays = stays_of(news)
  for _, stay in ipairs(stays) do
    if stay.left then past[#past + 1] = stay else present[stay.board] = stay end
  end
  for _, board in ipairs(boards) do
    local stay = present[board] or {board = board, since = #stays > 0 and now or 0}
    present[board] = nil
    texts[#texts + 1] = text_of_stay(stay)
  end
  for _, stay in pairs(present) do
    stay.left = now
    past[#past + 1] = stay
  end
  table.sort(past, function(one, other) return one.left > other.left end)
  for _, stay in ipairs(past) do
    local is_needed = stay.left > now - kept_for and #texts < MOST_STAYS
    if is_needed then texts[#texts + 1] = text_of_stay(stay) end
  end
  set_stays(news, texts)
end
