-- Included in the scripts that write publications of threads, behind positions.lua.
-- Takes: call; LAST_BOARD, text_of; now, kept_for (µs); most_publications; news_life (s).
-- Gives: trim, which lets old publications of a thread go, and lets its key expire.
local function trim(news)
  call('ZREMRANGEBYSCORE', news, '(' .. LAST_BOARD, '(' .. text_of(now - kept_for))
  local stays = call('ZCOUNT', news, '-inf', LAST_BOARD)
  local surplus = call('ZCARD', news) - stays - most_publications
  if surplus > 0 then call('ZREMRANGEBYRANK', news, stays, stays + surplus - 1) end
  call('EXPIRE', news, news_life)
end
