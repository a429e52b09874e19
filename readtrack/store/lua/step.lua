-- Takes a visitor to a stage of a subject's funnel.
-- Guarantees: each stage counts once in a visitor's pass, which ends an hour after its latest new stage. A later stage
-- counts the earlier ones with it, and no stage counts more than the one before it. A robot of the honeypot takes no step.
-- The subject is marked as changed, so that the next flush finds it. A funnel of another type counts nothing.
-- KEYS: rate (or the next key again, if the caller looked at it), unsettled, funnel, changed,
--       pass for each id of the visitor
-- ARGV: rate that marks a robot, name of the funnel in `unsettled`, subject, lifetimes of the list of what changed and of a pass (s),
--       number of the stage, names of all stages
-- Returns: 1 counted, 0 repeat
local call = redis.call
local rate, unsettled, funnel, changed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local robot, name, subject, bucket_life, pass_life = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local stage = tonumber(ARGV[6])
if rate ~= unsettled and tonumber(call('GET', rate) or 0) >= robot then return 0 end

-- unsettled.lua
-- changed.lua
-- A pass has the name of its last stage, and not the number, because a site may add a stage between two others.
local number_of = {}
for number = 1, #ARGV - 6 do number_of[ARGV[6 + number]] = number end
local reached = 0
for pass = 5, #KEYS do
  local last = call('GET', KEYS[pass])
  -- A stage that the site has taken away since was the first one at least.
  if last then reached = math.max(reached, number_of[last] or 1) end
end
if reached >= stage then return 0 end

-- A funnel that begins anew lacks what SQL stores of it: the flush settles it, as it settles totals.
if call('EXISTS', funnel) == 0 then mark_unsettled(unsettled, name) end
mark_changed(changed, subject)
for number = reached + 1, stage do
  redis.pcall('HINCRBY', funnel, ARGV[6 + number], 1)
end
-- Two visitors that only the cookie tells apart may both go on from one view, which then stood for two.
local count = 0
for number = stage, 1, -1 do
  local found = tonumber(redis.pcall('HGET', funnel, ARGV[6 + number])) or 0
  count = math.max(count, found)
  if found < count then call('HSET', funnel, ARGV[6 + number], count) end
end
for pass = 5, #KEYS do
  call('SET', KEYS[pass], ARGV[6 + stage], 'EX', pass_life)
end
return 1
