-- Takes a visitor to a stage of a subject's funnel.
-- Guarantees: each stage counts once in a visitor's pass, which ends an hour after its latest new stage;
-- a later stage brings the earlier ones with it, and no stage ever counts more than the one before it.
-- A visitor that record.lua takes for a robot takes no step. The minute's bucket has the subject, with no view more, so
-- that the flush finds it.
-- KEYS: rate, unsettled, funnel, trending bucket, pass of the visitor[, pass of the visitor before the cookie]
-- ARGV: life of a pass s, number of the stage, name of each stage up to it. Returns: 1 counted, 0 repeat
local TRAPPED = 1e15
local rate, unsettled, funnel, bucket, life, stage = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], tonumber(ARGV[2])
if tonumber(redis.call('GET', rate) or 0) >= TRAPPED then return 0 end

local reached = 0
for pass = 5, #KEYS do
  reached = math.max(reached, tonumber(redis.call('GET', KEYS[pass]) or 0))
end
if reached >= stage then return 0 end

-- A funnel that begins anew lacks what SQL kept of it: the flush settles that, as it does for totals.
local name = string.sub(funnel, #unsettled - #'views:unsettled' + 1)
if redis.call('EXISTS', funnel) == 0 then
  local time = redis.call('TIME')
  local now = string.format('%.0f', time[1] * 1000000 + time[2])
  redis.call('ZADD', unsettled, 'NX', now, name)
end
redis.call('ZINCRBY', bucket, 0, string.sub(name, #'funnel:' + 1))
if redis.call('TTL', bucket) < 0 then redis.call('EXPIRE', bucket, 4200) end
for number = reached + 1, stage do
  redis.call('HINCRBY', funnel, ARGV[2 + number], 1)
end
-- Two visitors whom only the cookie tells apart may both go on from one view: then it stood for two.
local count = 0
for number = stage, 1, -1 do
  local found = tonumber(redis.call('HGET', funnel, ARGV[2 + number]) or 0)
  count = math.max(count, found)
  if found < count then redis.call('HSET', funnel, ARGV[2 + number], count) end
end
for pass = 5, #KEYS do
  redis.call('SET', KEYS[pass], stage, 'EX', life)
end
return 1
