-- Records the views of one hit.
-- Guarantees: a view counts once per visitor, subject and window, even if this is sent twice, because every
-- counter comes after the window's SET NX.
-- KEYS: rate (or the next key again, if rate.lua counted the hit), unsettled, trending bucket;
--       per view: total, hour, model's hour, model's visitors of the minute, hll, window[, window of the visitor's
--       fallback id, or the stand-in's]
-- ARGV: what all hits have in common, which is numbers in a text: window (s), rate limit, rate that marks a robot,
--       lifetimes of an hour, of a model's hour, of a bucket and of a minute's visitors (s), rate window (s);
--       shape of the hit, also numbers: what rate.lua returned, or 0, length of keys' prefix,
--       refused hits in a rate window that may open windows of new cookies (0 for a visitor who has no new cookie),
--       0, or 1 for a hit that a page's script tells, 2 for one with a cookie and the window of its stand-in,
--       keys per view, number of views, and for record_batch.lua number of keys and of the arguments that follow;
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
local call = redis.call
local COUNTED, RATE, REPEAT, HONEYPOT, BROKEN = 1, 2, 3, 4, 5
local SHARED, FIXED = 3, 3
local rate, unsettled, bucket, visitor = KEYS[1], KEYS[2], KEYS[3], ARGV[3]
local window, limit, robot, hour_life, model_hour_life, bucket_life, minute_life, rate_window =
  string.match(ARGV[1], string.rep('(%d+) ?', 8))
local counted_hits, prefix, newcomers, script, width, views = string.match(ARGV[2], string.rep('(%d+) ', 6))
limit, robot, prefix, newcomers = tonumber(limit), tonumber(robot), tonumber(prefix), tonumber(newcomers)
script, width, views = tonumber(script), tonumber(width), tonumber(views)
local options = ARGV[FIXED + views + 1] and cjson.decode(ARGV[FIXED + views + 1])
local counters = options and 4 or 5
local identities = options and options.identities or script == 2 and 1 or width - counters
local slices = options and options.slices or 0
local is_in_slices, is_confirmed_in_slices, apply

-- Enters a counter that has just begun: the flush adds what SQL already counted. The first one names the list.
local function mark(name)
  local time = call('TIME')
  local now = string.format('%.0f', time[1] * 1000000 + time[2])
  call('ZADD', unsettled, 'NX', now, name)
  if call('ZCARD', unsettled) == 1 then call('ZADD', unsettled, '+inf', 'epoch ' .. now .. ' 0 0 0') end
end

-- Returns the count; false for a key that holds no number, which no error may keep from all other pages.
local function count(key)
  local found = redis.pcall('INCR', key)
  return type(found) == 'number' and found
end

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
    if call('HLEN', KEYS[key]) == 1 then mark(string.sub(KEYS[key], prefix + 1)) end
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

-- A new cookie's view that the stand-in (a hash of address and browser) let count is provisional: the cookie's window
-- holds 'p', and 0 where the stand-in refused it. The first of those cookies whose page comes to life confirms the view,
-- or takes it over. Each further one is another person behind the address. Returns true if this view counted before.
local function is_confirmed(own, stand_in)
  local mine = call('GET', own)
  if not mine then return not call('SET', own, 1, 'NX', 'EX', window) end
  if mine == '1' then return true end
  call('SET', own, 1, 'KEEPTTL')
  return call('GET', stand_in) ~= '2' and (call('SET', stand_in, 2, 'XX', 'KEEPTTL') or true)
end

-- Returns true if one of the visitor's windows is open; opens all of them if none is. The first is the visitor's own.
local function is_repeat(view, first)
  if slices > 0 then return (script == 2 and is_confirmed_in_slices or is_in_slices)(view, first, identities) end
  if script == 2 then return is_confirmed(KEYS[first], KEYS[first + 1]) end
  if identities == 2 then
    if call('EXISTS', KEYS[first]) == 1 then return true end
    if not call('SET', KEYS[first + 1], 1, 'NX', 'EX', window) then return true end
  end
  return not call('SET', KEYS[first], newcomers > 0 and 'p' or 1, 'NX', 'EX', window)
end

-- Opens the window of a new cookie whose hit is refused, so that a reload with the cookie stays a repeat. It is marked
-- as refused: 0 in place of 1; in a slice, the complement of its member comes with it.
local function open_refused(view, first)
  if slices == 0 then
    call('SET', KEYS[first], 0, 'NX', 'EX', window)
  elseif not is_in_slices(view, first, 1) then
    call('SADD', KEYS[first], -1 - tonumber(options.views[view].members[1]))
  end
end

-- Most hits are a visitor's only one in a rate window, so that one costs a single command.
local hits = rate == unsettled and tonumber(counted_hits)
  or call('SET', rate, 1, 'NX', 'EX', rate_window) and 1
  or call('INCR', rate)
local limited = hits > limit and (hits > robot and HONEYPOT or RATE)

local outcome, is_new = {}, false
for view = 1, views do
  local key = SHARED + 1 + width * (view - 1)
  local total
  outcome[view] = limited or is_repeat(view, key + counters) and REPEAT or COUNTED
  if outcome[view] == COUNTED then
    total = count(KEYS[key])
    outcome[view] = total and COUNTED or BROKEN
  end
  if total then
    is_new = true
    local subject = ARGV[FIXED + view]
    if total == 1 then mark(subject) end
    if count(KEYS[key + 1]) == 1 then call('EXPIRE', KEYS[key + 1], hour_life) end
    if count(KEYS[key + 2]) == 1 then
      call('EXPIRE', KEYS[key + 2], model_hour_life)
      mark(string.sub(KEYS[key + 2], prefix + 1))
    end
    if not options then redis.pcall('PFADD', KEYS[key + 4], visitor) end
    -- The score is 1 only for a subject that is new to this minute, so the bucket's lifetime is set rarely.
    if call('ZINCRBY', bucket, 1, subject) == '1' then call('EXPIRE', bucket, bucket_life) end
    if options then apply(view) end
  elseif hits <= newcomers and outcome[view] ~= BROKEN then
    open_refused(view, key + counters)
  end
  -- Each hit that is refused for the lack of a cookie has an id of its own, so they would be as many people.
  if total or outcome[view] == REPEAT and newcomers == 0 then
    if redis.pcall('PFADD', KEYS[key + 3], visitor) == 1 then call('EXPIRE', KEYS[key + 3], minute_life) end
  end
end

-- The page's own request was a hit already.
if script > 0 and newcomers == 0 and not is_new and rate ~= unsettled then call('DECR', rate) end

return outcome
