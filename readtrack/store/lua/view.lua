-- The rule of counting: when one view counts. Included in the loops of record.lua, and of scripts of parts that count
-- many hits, because Lua would make a function anew for each hit.
-- Guarantees: a view counts once per visitor, subject and window, even if it is sent twice, because every counter comes
--   after the window's SET NX.
-- Takes keys: rate, unsettled, bucket, changed, total, minute_visitors; hll, or total again where another strategy counts visitors;
--   own_window; other_window, that of the visitor's fallback id or of the stand-in, or nil.
-- Takes the indexes in KEYS of what the parts need: subject_key, the first of their keys with the subject in its name, and
--   model_key, the first with only its model.
-- Takes values: subject, visitor; counted_hits, what rate.lua returned where the rate is in another partition, or 0;
--   newcomers, the refused hits in a rate window that may open windows of new cookies, 0 for a visitor without a new
--   cookie; teller (see common.lua); hits, nil at the first view of a hit.
-- Takes seen_key, where the page was seen: the index in KEYS of the first key that the parts need for that; or nil.
-- Gives: outcome, and hits for the hit's next view.
--
-- A window holds 1 for a counted view, and s once the page of that view was seen. One view has one such window, so no
-- more views are seen than are counted. Other windows of the view hold 2 (the view is that of another id's window) or p.

if not hits then
  if rate == unsettled then
    hits = counted_hits
  elseif call('SET', rate, '1', 'NX', 'EX', rate_window) then
    hits = 1 -- most hits are a visitor's only one in a rate window, so that one costs a single command
  else
    hits = call('INCR', rate)
  end
end

local outcome
if hits > robot then
  outcome = HONEYPOT
elseif hits > most_hits then
  outcome = RATE
elseif teller == BY_REPORT_WITHOUT_VIEW then
  outcome = REPEAT
elseif teller == BY_REPORT_WITH_COOKIE then
  -- A new cookie's view that the stand-in (a hash of address and browser) let count is provisional: the cookie's window
  -- holds 'p', and 0 where the stand-in refused it. The first of those cookies whose page comes to life confirms the
  -- view, or takes it over. Each further one is another person behind the address.
  -- A cookie without a window is that of a page out of a cache, or of one whose own hit is still to be sent by another
  -- process. It leaves its mark on the stand-in, too, which the page's hit then meets.
  local state = call('GET', own_window)
  if state and state ~= 'p' and state ~= '0' then
    outcome = REPEAT
  else
    local stand_in = call('GET', other_window)
    local holds = '1'
    if stand_in == '1' or stand_in == 's' then
      holds = stand_in
      call('SET', other_window, '2', 'KEEPTTL')
      outcome = REPEAT
    elseif state and not stand_in then
      holds = '2'
      outcome = REPEAT
    elseif not stand_in then
      call('SET', other_window, '2', 'EX', window)
    end
    if state then call('SET', own_window, holds, 'KEEPTTL') else call('SET', own_window, holds, 'EX', window) end
  end
elseif not call('SET', own_window, newcomers > 0 and 'p' or '1', 'NX', 'EX', window) then
  outcome = REPEAT
elseif other_window and not call('SET', other_window, newcomers > 0 and '1' or '2', 'NX', 'EX', window) then
  call('DEL', own_window)
  outcome = REPEAT
end

if not outcome then
  -- No error of a key that holds no number, or is of another type, may keep this from all other pages.
  local views = redis.pcall('INCR', total)
  outcome = type(views) == 'number' and COUNTED or BROKEN
  if views == 1 then mark_unsettled(unsettled, subject) end
end
if outcome == COUNTED then
  if hll ~= total then redis.pcall('PFADD', hll, visitor) end
  -- The score is that of one view only for a subject that is new to this minute, so the lifetime is set rarely.
  if redis.pcall('ZINCRBY', bucket, view_weight, subject) == view_weight then call('EXPIRE', bucket, bucket_life) end
  mark_changed(changed, subject)
-- parts: counted
elseif hits <= newcomers and outcome ~= BROKEN and teller ~= BY_REPORT_WITHOUT_VIEW then
  -- So that a reload with the new cookie stays a repeat.
  call('SET', own_window, '0', 'NX', 'EX', window)
end
-- Each hit that is refused for the lack of a cookie has an id of its own, so they would be as many people.
if outcome == COUNTED or outcome == REPEAT and newcomers == 0 then
  if redis.pcall('PFADD', minute_visitors, visitor) == 1 then call('EXPIRE', minute_visitors, minute_life) end
end
if seen_key and (outcome == COUNTED or outcome == REPEAT) then
-- parts: seen
end
