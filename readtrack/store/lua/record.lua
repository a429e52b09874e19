-- Records the views of one hit.
-- KEYS: rate (or the next key again, if rate.lua counted the hit), unsettled, trending bucket;
--       per view: total, hour, model's hour, model's visitors of the minute, visitors of the day (or total again), hll
--       (not with options), reading (only where the page was seen), window[, window of the visitor's fallback id, or the stand-in's]; with options, the keys of
--       all effects
-- ARGV: 1 to 10 as in common.lua;
--       11 what rate.lua returned, or 0; 12 length of the keys' prefix; 13 refused hits in a rate window that may open
--       windows of new cookies, 0 for a visitor without a new cookie; 14 who tells of the hit; 15 1 if the page was seen,
--       or 0; 16 keys per view; 17 number of views; 18 visitor; subject of each view[; options]
-- Returns: per view 1 counted, 2 rate, 3 repeat, 4 honeypot, 5 total is no number
--
-- `options` is JSON, sent by sites that count more than that (store/effects.py):
--   identities: number of ids that the visitor is known by; values: number of values that a dimension keeps;
--   pass: lifetime of a pass through the funnel (s);
--   effects: per view {{name, number of its first key, argument}, ...}
-- common.lua
-- seen.lua
local SHARED_KEYS, VISITOR = 3, COMMON + 8
local rate, unsettled, bucket, visitor = KEYS[1], KEYS[2], KEYS[3], ARGV[VISITOR]
local counted_hits, prefix_length = tonumber(ARGV[COMMON + 1]), tonumber(ARGV[COMMON + 2])
local newcomers, teller = tonumber(ARGV[COMMON + 3]), tonumber(ARGV[COMMON + 4])
local is_seen = ARGV[COMMON + 5] == '1'
local keys_per_view, views = tonumber(ARGV[COMMON + 6]), tonumber(ARGV[COMMON + 7])
local options = ARGV[VISITOR + views + 1] and cjson.decode(ARGV[VISITOR + views + 1])
local counters = options and 5 or 6 -- keys of a view before its windows, without reading
if is_seen then counters = counters + 1 end
local apply_effects

if options then
  local effects = {}

  function effects.hll(key) redis.pcall('PFADD', KEYS[key], visitor) end

  function effects.set(key) call('SADD', KEYS[key], visitor) end

  -- A visitor who is new to the day's set is one more in the running count, which is the next key.
  function effects.daily(key, life)
    if call('SADD', KEYS[key], visitor) == 0 then return end
    if call('SCARD', KEYS[key]) == 1 then call('EXPIRE', KEYS[key], life) end
    call('INCR', KEYS[key + 1])
  end

  function effects.bitmap(key, reader) call('SETBIT', KEYS[key], reader, 1) end

  -- Only a hash with a single field may have begun just now.
  local function mark_hash(key)
    if call('HLEN', KEYS[key]) == 1 then
      mark_unsettled(unsettled, string.sub(KEYS[key], prefix_length + 1))
    end
  end

  -- Enters the funnel's first stage, once in a visitor's pass (see step.lua).
  function effects.funnel(key, stage)
    local is_new = true
    for pass = key + 1, key + options.identities do
      is_new = call('SET', KEYS[pass], 1, 'NX', 'EX', options.pass) and is_new
    end
    if is_new and call('HINCRBY', KEYS[key], stage, 1) == 1 then mark_hash(key) end
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

  -- A visitor can make up values, so a hash keeps a number of them, by weight (space-saving, Metwally et al., 2005): a
  -- new value takes the place and the count of the smallest. So the counts add up to the views, the smallest never
  -- falls, and a value that comes back counts more than it did, which merging by maximum needs. Where a settling left
  -- too many values, those beyond the first replaced one become "other", which is never replaced.
  function effects.value(key, value)
    local hash = KEYS[key]
    if call('HINCRBY', hash, value, 1) > 1 then return end
    mark_hash(key)
    local excess = call('HLEN', hash) - options.values
    if excess > 0 then excess = excess - call('HEXISTS', hash, 'other') end
    for remaining = excess, 1, -1 do
      local replaced, count = smallest(hash, value)
      call('HDEL', hash, replaced)
      call('HINCRBY', hash, remaining == 1 and value or 'other', count)
    end
  end

  function apply_effects(view)
    for _, effect in ipairs(options.effects[view]) do
      local name, key, argument = unpack(effect)
      effects[name](key, argument)
    end
  end
end

local outcomes, has_counted, hits = {}, false, nil
for view = 1, views do
  local key = SHARED_KEYS + 1 + keys_per_view * (view - 1)
  local total, hour, model_hour, minute_visitors, day_visitors = unpack(KEYS, key, key + 4)
  local hll = not options and KEYS[key + 5]
  local reading = is_seen and KEYS[key + counters - 1]
  local own_window, other_window = KEYS[key + counters], nil
  if keys_per_view > counters + 1 then other_window = KEYS[key + counters + 1] end
  local subject = ARGV[VISITOR + view]
-- view.lua
  if outcome == COUNTED then
    has_counted = true
    if options then apply_effects(view) end
  end
  outcomes[view] = outcome
end

-- A script's hit that counts nothing is taken back, because the page's own request was a hit already.
if teller > 0 and newcomers == 0 and not has_counted and rate ~= unsettled then call('DECR', rate) end
return outcomes
