-- Counts one view: the middle of the loops of record.lua and record_batch.lua. Lua would make a function anew for each
-- hit.
-- Guarantees: a view counts once per visitor, subject and window, even if it is sent twice, because every counter comes
-- after the window's SET NX.
-- KEYS: by name: rate, unsettled, bucket, total, hour, model_hour, minute_visitors, hll (nil with options), own, other;
--       the window is `own`, and `other` that of the visitor's fallback id, or the stand-in's, or nil
-- Returns: nothing, but sets `outcome`, and at the first view of a hit, where it is nil, `hits`

-- Most hits are a visitor's only one in a rate window, so that one costs a single command.
hits = hits or rate == unsettled and tonumber(counted_hits)
  or call('SET', rate, '1', 'NX', 'EX', rate_window) and 1
  or call('INCR', rate)
local outcome = hits > limit and (hits > robot and HONEYPOT or RATE)

if outcome then
  -- Nothing is looked up.
elseif slices > 0 then
  outcome = (script == 2 and is_confirmed_in_slices or is_in_slices)(view, key + counters, identities) and REPEAT
elseif script == 2 then
  -- A new cookie's view that the stand-in (a hash of address and browser) let count is provisional: the cookie's window
  -- holds 'p', and 0 where the stand-in refused it. The first of those cookies whose page comes to life confirms the
  -- view, or takes it over. Each further one is another person behind the address.
  local mine = call('GET', own)
  if not mine then
    call('SET', own, '1', 'EX', window)
  elseif mine == '1' then
    outcome = REPEAT
  else
    call('SET', own, '1', 'KEEPTTL')
    if call('GET', other) ~= '2' then
      call('SET', other, '2', 'XX', 'KEEPTTL')
      outcome = REPEAT
    end
  end
elseif not call('SET', own, newcomers > 0 and 'p' or '1', 'NX', 'EX', window) then
  outcome = REPEAT
elseif other and not call('SET', other, '1', 'NX', 'EX', window) then
  call('DEL', own)
  outcome = REPEAT
end

if not outcome then
  -- No error of a key that holds no number may keep this from all other pages.
  local number = redis.pcall('INCR', total)
  outcome = type(number) == 'number' and COUNTED or BROKEN
  if number == 1 then mark(unsettled, subject) end
end
if outcome == COUNTED then
  if redis.pcall('INCR', hour) == 1 then call('EXPIRE', hour, hour_life) end
  if redis.pcall('INCR', model_hour) == 1 then
    call('EXPIRE', model_hour, model_hour_life)
    mark(unsettled, string.sub(model_hour, prefix + 1))
  end
  if hll then redis.pcall('PFADD', hll, visitor) end
  -- The score is 1 only for a subject that is new to this minute, so the bucket's lifetime is set rarely.
  if call('ZINCRBY', bucket, '1', subject) == '1' then call('EXPIRE', bucket, bucket_life) end
elseif slices == 0 and hits <= newcomers and outcome ~= BROKEN then
  -- So that a reload with the new cookie stays a repeat.
  call('SET', own, '0', 'NX', 'EX', window)
end
-- Each hit that is refused for the lack of a cookie has an id of its own, so they would be as many people.
if outcome == COUNTED or outcome == REPEAT and newcomers == 0 then
  if redis.pcall('PFADD', minute_visitors, visitor) == 1 then call('EXPIRE', minute_visitors, minute_life) end
end
