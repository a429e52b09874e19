-- Included in the scripts that place threads in boards, behind positions.lua.
-- Takes: call; LAST_BOARD, text_of, boards_of; board_prefix, what the keys of boards' lists begin with; news_life (s);
--   most_threads of a board's list.
-- Gives: place, which enters a thread into the lists of its boards.

-- The list of a board that the thread has left still has it, but unread_boards.lua asks the thread for its boards.
local function place(news, key, time)
  for _, board in ipairs(boards_of(news)) do
    local list = board_prefix .. string.sub(board, 2) -- without the @
    call('ZADD', list, 'GT', text_of(time), key)
    call('ZREMRANGEBYRANK', list, 0, -(most_threads + 1))
    call('EXPIRE', list, news_life)
  end
end

local function set_boards(news, boards)
  call('ZREMRANGEBYSCORE', news, '-inf', LAST_BOARD)
  for number, board in ipairs(boards) do call('ZADD', news, number, board) end
end
