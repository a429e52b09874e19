-- Records the views of one hit.
-- KEYS: rate (or the next key again, if rate.lua counted the hit), unsettled, trending bucket;
--       per view: total, hour, model's hour, model's visitors of the minute, hll, window[, window of the visitor's
--       fallback id, or the stand-in's]
-- ARGV: what all hits have in common (see common.lua);
--       shape of the hit, which is numbers in a text: what rate.lua returned, or 0, length of keys' prefix,
--       refused hits in a rate window that may open windows of new cookies (0 for a visitor who has no new cookie),
--       0, or 1 for a hit that a page's script tells, 2 for one with a cookie and the window of its stand-in,
--       keys per view, number of views, and for record_batch.lua number of keys and of the arguments that follow, and
--       where the subject begins in its total's key, and the visitor in the window's (bytes from 1);
--       visitor, subject of each view[, options]
-- Returns: per view 1 counted, 2 rate, 3 repeat, 4 honeypot, 5 total is no number
--
-- `options` is JSON, sent by sites that count more than that (store/recording.py):
--   identities: number of ids that the visitor is known by; values: number of values that a dimension keeps;
--   pass: lifetime of a pass through the funnel (s);
--   slices: 0 if windows are strings, else the number of sets that make up a window, which then lives `window` seconds;
--   views: per view {members: one per identity (slices only), effects: {{name, number of its first key, argument}, ...}}
-- The keys of a view are then the first four, and its windows or the sets of each identity, newest first;
-- the stand-in is the identity behind the others.
-- The keys of effects come after those of all views.
-- common.lua
local SHARED, FIXED = 3, 3
local rate, unsettled, bucket, visitor = KEYS[1], KEYS[2], KEYS[3], ARGV[3]
local counted_hits, prefix, newcomers, script, width, views = string.match(ARGV[2], string.rep('(%d+) ', 6))
prefix, newcomers = tonumber(prefix), tonumber(newcomers)
script, width, views = tonumber(script), tonumber(width), tonumber(views)
local options = ARGV[FIXED + views + 1] and cjson.decode(ARGV[FIXED + views + 1])
local counters = options and 4 or 5
local identities = options and options.identities or script == 2 and 1 or width - counters
local slices = options and options.slices or 0
local is_in_slices, is_confirmed_in_slices, apply

if options then
  local effects = {}

  function effects.hll(key) redis.pcall('PFADD', KEYS[key], visitor) end

  function effects.day(key, life)
    call('PFADD', KEYS[key], visitor)
    if call('TTL', KEYS[key]) < 0 then call('EXPIRE', KEYS[key], life) end
  end

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
    if call('HLEN', KEYS[key]) == 1 then mark(unsettled, string.sub(KEYS[key], prefix + 1)) end
  end

  -- Enters the funnel's first stage, once in a visitor's pass (see step.lua).
  function effects.funnel(key, stage)
    local is_new = true
    for pass = key + 1, key + identities do
      is_new = call('SET', KEYS[pass], 1, 'NX', 'EX', options.pass) and is_new
    end
    if is_new and call('HINCRBY', KEYS[key], stage, 1) == 1 then mark_hash(key) end
  end

  local function smallest(hash, newcomer)
    local fields, found, least = call('HGETALL', hash), nil, nil
    for index = 1, #fields, 2 do
      local count = tonumber(fields[index + 1])
      if fields[index] ~= newcomer and fields[index] ~= 'other' and (not least or count < least) then
        found, least = fields[index], count
      end
    end
    return found, least
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
    for left = excess, 1, -1 do
      local found, count = smallest(hash, value)
      call('HDEL', hash, found)
      call('HINCRBY', hash, left == 1 and value or 'other', count)
    end
  end

  local function provisional(member) return bit.bxor(member, 0x55555555) end

  -- Returns true if one of the first `known` identities is in one of the slices; adds them to the newest slice if not.
  function is_in_slices(view, first, known)
    local members = options.views[view].members
    for identity = 1, known do
      for slice = 0, slices - 1 do
        if call('SISMEMBER', KEYS[first + (identity - 1) * slices + slice], members[identity]) == 1 then return true end
      end
    end
    for identity = 1, known do
      local newest = KEYS[first + (identity - 1) * slices]
      call('SADD', newest, members[identity])
      if call('SCARD', newest) == 1 then call('EXPIRE', newest, window) end
    end
    if known == identities and newcomers > 0 then call('SADD', KEYS[first], provisional(members[1])) end
    return false
  end

  -- Does what is_confirmed does. In the set with the cookie's member, a second one stands for 'p' and its complement for
  -- 0; in the set with the stand-in's, its complement stands for 2.
  function is_confirmed_in_slices(view, first)
    if not is_in_slices(view, first, 1) then return false end
    local mine, theirs = tonumber(options.views[view].members[1]), tonumber(options.views[view].members[2])
    local left, is_taken = 0, false
    for slice = 0, slices - 1 do
      left = left + call('SREM', KEYS[first + slice], -1 - mine, provisional(mine))
      is_taken = is_taken or call('SISMEMBER', KEYS[first + slices + slice], -1 - theirs) == 1
    end
    if left == 0 or is_taken then return left == 0 end
    for slice = 0, slices - 1 do
      local name = KEYS[first + slices + slice]
      if call('SISMEMBER', name, theirs) == 1 then call('SADD', name, -1 - theirs) end
    end
    return true
  end

  function apply(view)
    for _, effect in ipairs(options.views[view].effects) do effects[effect[1]](effect[2], effect[3]) end
  end
end

local outcomes, is_new, hits = {}, false, nil
for view = 1, views do
  local key = SHARED + 1 + width * (view - 1)
  local total, hour, model_hour, minute_visitors = KEYS[key], KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
  local hll, own, other = not options and KEYS[key + 4], KEYS[key + counters], nil
  if width > counters + 1 then other = KEYS[key + counters + 1] end
  local subject = ARGV[FIXED + view]
-- view.lua
  if outcome == COUNTED then
    is_new = true
    if options then apply(view) end
  elseif slices > 0 and hits <= newcomers and outcome ~= BROKEN and not is_in_slices(view, key + counters, 1) then
    call('SADD', own, -1 - tonumber(options.views[view].members[1]))  -- marks the view as refused
  end
  outcomes[view] = outcome
end

-- The page's own request was a hit already.
if script > 0 and newcomers == 0 and not is_new and rate ~= unsettled then call('DECR', rate) end
return outcomes
