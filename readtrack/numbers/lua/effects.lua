-- Effects of a counted view: the first stage of the funnel, and the values of dimensions. Joined into record.lua.
-- Takes pass_life, the lifetime of a pass through the funnel (s); most_values, the number of values that a dimension keeps.
-- Takes what record.lua has, and mark_unsettled and without_prefix.
-- Gives: effects.funnel, effects.value.

-- Only a hash with a single field may have begun just now.
local function mark_hash(hash)
  if call('HLEN', hash) == 1 then mark_unsettled(unsettled, without_prefix(hash, unsettled)) end
end

-- Enters the funnel's first stage, once in a visitor's pass (see step.lua). The keys are the funnel, and a pass for each
-- id of the visitor.
function effects.funnel(key, stage, last_pass)
  local funnel, is_new = KEYS[key], true
  for pass = key + 1, last_pass do
    is_new = call('SET', KEYS[pass], stage, 'NX', 'EX', pass_life) and is_new
  end
  if is_new and redis.pcall('HINCRBY', funnel, stage, 1) == 1 then mark_hash(funnel) end
end

local function smallest(hash, newcomer)
  local fields, smallest_value, least = call('HGETALL', hash), nil, nil
  for index = 1, #fields, 2 do
    local value, count = fields[index], tonumber(fields[index + 1])
    if value ~= newcomer and value ~= 'other' and (not least or count < least) then
      smallest_value, least = value, count
    end
  end
  return smallest_value, least
end

-- A visitor can make up values, so a hash keeps a number of them, by weight (space-saving, Metwally et al., 2005): a new
-- value takes the place and the count of the smallest. So the counts add up to the views, the smallest never falls, and a
-- value that comes back counts more than it did, which merging by maximum needs. Where a settling left too many values,
-- those beyond the first replaced one become "other", which is never replaced.
function effects.value(key, value)
  local hash = KEYS[key]
  if redis.pcall('HINCRBY', hash, value, 1) ~= 1 then return end
  mark_hash(hash)
  local excess = call('HLEN', hash) - most_values
  if excess > 0 then excess = excess - call('HEXISTS', hash, 'other') end
  for remaining = excess, 1, -1 do
    local replaced, count = smallest(hash, value)
    call('HDEL', hash, replaced)
    call('HINCRBY', hash, remaining == 1 and value or 'other', count)
  end
end
