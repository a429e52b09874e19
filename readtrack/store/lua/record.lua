-- Records what one hit views.
-- Guarantees: a view counts once per visitor, subject and window, whoever sends this twice, for
-- every counter sits behind the window's SET NX.
-- KEYS: rate (which whoever followed the honeypot has beyond all limits), unsettled, trending bucket;
--       per view: total, hour, its model's hour, hll, window of the visitor[, window of the visitor before the cookie]
-- ARGV: window s, rate limit, rate window s, visitor, keys per view, views, id of each view
-- Returns: per view 1 counted, 2 rate, 3 repeat, 4 honeypot
--
-- A site that counts more than that (store/effects.py) sends besides
-- ARGV: visitors told apart by (1, or 2 with the one before the cookie), slices (0: windows are strings);
--       per view: its member in each of their windows, where windows are slices;
--                 effects, and of each effect: name, number of its first key, argument
-- KEYS: no hll; where windows are slices: those sets of each visitor, newest first, ARGV 1 being their life;
--       after the views: the keys of the effects
local call = redis.call
local COUNTED, RATE, REPEAT = 1, 2, 3
local HONEYPOT, TRAPPED = 4, 1e15
local SHARED, VALUES = 3, 50
local window, limit, width, views = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[5]), tonumber(ARGV[6])
local visitor = ARGV[4]
local outcome = {}

-- Where the next view's part of what only some sites send begins; nil for all others.
local extra = #ARGV > 6 + views and 9 + views or nil
local counters, identities, slices = 4, width - 4, 0
local is_in_slices, apply

-- A counter that begins anew lacks what SQL kept of it: the flush settles that. Without an id, it is called by its key.
local function mark(key, id)
  local time, prefix = call('TIME'), #KEYS[2] - #'views:unsettled'
  local now = string.format('%.0f', time[1] * 1000000 + time[2])
  call('ZADD', KEYS[2], 'NX', now, id or string.sub(KEYS[key], prefix + 1))
end

if extra then
  counters, identities, slices = 3, tonumber(ARGV[7 + views]), tonumber(ARGV[8 + views])
  local effects = {}

  function effects.hll(key) call('PFADD', KEYS[key], visitor) end

  function effects.day(key, life)
    call('PFADD', KEYS[key], visitor)
    if call('TTL', KEYS[key]) < 0 then call('EXPIRE', KEYS[key], life) end
  end

  function effects.set(key) call('SADD', KEYS[key], visitor) end

  -- Whoever is new to the day's set is one more in the running count, the key after it.
  function effects.daily(key, life)
    if call('SADD', KEYS[key], visitor) == 0 then return end
    if call('SCARD', KEYS[key]) == 1 then call('EXPIRE', KEYS[key], life) end
    call('INCR', KEYS[key + 1])
  end

  function effects.bitmap(key, reader) call('SETBIT', KEYS[key], reader, 1) end

  -- Only a hash with a single field may have begun just now.
  local function mark_hash(key)
    if call('HLEN', KEYS[key]) == 1 then mark(key) end
  end

  -- The first stage, once in a visitor's pass through the funnel (see step.lua).
  function effects.funnel(key, stage)
    local is_new = true
    for pass = key + 1, key + identities do
      is_new = call('SET', KEYS[pass], 1, 'NX', 'EX', 3600) and is_new
    end
    if is_new and call('HINCRBY', KEYS[key], stage, 1) == 1 then mark_hash(key) end
  end

  -- A visitor can make up values, so a hash takes a number of them, and the rest is "other".
  function effects.value(key, value)
    if call('HINCRBY', KEYS[key], value, 1) > 1 then return end
    mark_hash(key)
    if call('HLEN', KEYS[key]) <= VALUES then return end
    call('HDEL', KEYS[key], value)
    call('HINCRBY', KEYS[key], 'other', 1)
  end

  -- Whether one of the visitors is in one of the slices; enters them in the newest if not.
  function is_in_slices(first)
    for index = 0, identities * slices - 1 do
      local member = ARGV[extra + math.floor(index / slices)]
      if call('SISMEMBER', KEYS[first + index], member) == 1 then return true end
    end
    for identity = 0, identities - 1 do
      local newest = KEYS[first + identity * slices]
      call('SADD', newest, ARGV[extra + identity])
      if call('SCARD', newest) == 1 then call('EXPIRE', newest, window) end
    end
    return false
  end

  -- Applies the view's effects where it counted; moves on to the next view's.
  function apply(is_counted)
    local at = slices > 0 and extra + identities or extra
    local last = at + 3 * ARGV[at]
    for effect = at + 1, is_counted and last or at, 3 do
      effects[ARGV[effect]](tonumber(ARGV[effect + 1]), ARGV[effect + 2])
    end
    extra = last + 1
  end
end

local limited = false
if limit > 0 then
  -- Most hits are a visitor's only one in a window, so that one costs a single command.
  local hits = call('SET', KEYS[1], 1, 'NX', 'EX', ARGV[3]) and 1 or call('INCR', KEYS[1])
  if hits > limit then limited = hits > TRAPPED and HONEYPOT or RATE end
end

for view = 1, views do
  local key = SHARED + 1 + width * (view - 1)
  if limited then
    outcome[view] = limited
  elseif slices > 0 and is_in_slices(key + counters) then
    outcome[view] = REPEAT
  elseif slices == 0 and identities == 2 and not call('SET', KEYS[key + counters + 1], 1, 'NX', 'EX', window) then
    outcome[view] = REPEAT
  elseif slices == 0 and not call('SET', KEYS[key + counters], 1, 'NX', 'EX', window) then
    outcome[view] = REPEAT
  else
    local id = ARGV[6 + view]
    if call('INCR', KEYS[key]) == 1 then mark(key, id) end
    if call('INCR', KEYS[key + 1]) == 1 then call('EXPIRE', KEYS[key + 1], 86400) end
    if call('INCR', KEYS[key + 2]) == 1 then
      call('EXPIRE', KEYS[key + 2], 172800)
      mark(key + 2)
    end
    if not extra then call('PFADD', KEYS[key + 3], visitor) end
    -- The score is 1 only for a subject new to this minute, so the bucket's life is set rarely.
    if call('ZINCRBY', KEYS[3], 1, id) == '1' then call('EXPIRE', KEYS[3], 4200) end
    outcome[view] = COUNTED
  end
  if extra then apply(outcome[view] == COUNTED) end
end

return outcome
