-- What a counted view writes for charts: the hours of its subject and of the model, and the visitors of the day.
-- Joined into view.lua, so a view that is sent twice is counted once.
-- Takes keys: hours, model_hour, whose name ends with the hour and the model; day_visitors, or total again where nobody counts the visitors of a day.
-- Takes lifetimes (s): hours_life, model_hour_life, day_life; most_hours, the number of hours that a subject keeps.
-- Takes what view.lua takes, and mark_unsettled and without_prefix.
local has_day = day_visitors ~= total
if has_day then redis.pcall('PFADD', day_visitors, visitor) end
if redis.pcall('HINCRBY', hours, string.match(model_hour, '(%d+):[^:]*$'), 1) == 1 then
  call('EXPIRE', hours, hours_life)
  -- Full flushes remove hours that are stored. Without them the oldest ones make room.
  if call('HLEN', hours) > most_hours then
    local names = call('HKEYS', hours)
    table.sort(names)
    call('HDEL', hours, unpack(names, 1, #names - most_hours))
  end
  -- Mostly a day's sketch begins with an hour. A flush gives one that does not its life (see unite_days.lua).
  if has_day then call('EXPIRE', day_visitors, day_life) end
end
if redis.pcall('INCR', model_hour) == 1 then
  call('EXPIRE', model_hour, model_hour_life)
  mark_unsettled(unsettled, without_prefix(model_hour, unsettled))
end
