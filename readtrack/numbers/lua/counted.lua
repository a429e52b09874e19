-- What a counted view writes for charts: the hours of its subject and of the model, and the visitors of the day.
-- Joined into view.lua, so a view that is sent twice is counted once.
-- Takes keys: hour, model_hour; day_visitors, or total again where nobody counts the visitors of a day.
-- Takes lifetimes (s): hour_life, model_hour_life, day_life.
-- Takes what view.lua takes, and mark_unsettled and without_prefix.
local has_day = day_visitors ~= total
if has_day then redis.pcall('PFADD', day_visitors, visitor) end
if redis.pcall('INCR', hour) == 1 then
  call('EXPIRE', hour, hour_life)
  -- A day begins with an hour, so no day's sketch begins without this.
  if has_day then call('EXPIRE', day_visitors, day_life) end
end
if redis.pcall('INCR', model_hour) == 1 then
  call('EXPIRE', model_hour, model_hour_life)
  mark_unsettled(unsettled, without_prefix(model_hour, unsettled))
end
