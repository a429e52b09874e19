-- Counts how far a visitor has read the text of a subject: views >= seen >= engaged >= each bin, and each later stage.
-- Guarantees: engagement counts once in a visitor's pass, and only after a view in an open window. A later stage counts
-- once, and only after engagement. A later bin or stage counts the earlier ones with it. An engaged view was seen. No bin
-- counts more than the one before it, no stage more than engagement, and nothing more than the views. A robot of the honeypot reads nothing.
-- The subject is marked as changed, so that the next flush finds it. A hash of another type counts nothing.
-- KEYS: rate (or the next key again, if the caller looked at it), unsettled, reading, changed, trending bucket, total;
--       per id of the visitor: window, pass of engagement, pass of the later stages; window of the stand-in, or nothing
-- ARGV: rate that marks a robot, name of the hash in `unsettled`, subject, lifetimes of a bucket and of a pass (s), what a
--       view adds to its subject in the bucket, number of ids, number of later stages that were reached, number of later
--       stages; the fields: those of all later stages, of engagement, and of each bin that was reached
-- Returns: {1 if the last bin is new, for each later stage 1 if it is new}
local call = redis.call
local rate, unsettled, reading, changed, bucket, total = unpack(KEYS, 1, 6)
local robot, name, subject, bucket_life, pass_life, view_weight = tonumber(ARGV[1]), unpack(ARGV, 2, 6)
local ids, reached_stages, stages, FIRST_STAGE = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), 10
local FIRST = FIRST_STAGE + stages
local bins = #ARGV - FIRST + 1
-- A pass has the name of the last stage, and not its number, because a stage may be added between two others.
local answer, number_of = {0}, {}
for stage = 1, stages do
  number_of[ARGV[FIRST_STAGE + stage - 1]] = stage
  answer[stage + 1] = 0
end
if rate ~= unsettled and tonumber(call('GET', rate) or 0) >= robot then return answer end

-- unsettled.lua
-- changed.lua
-- functions.lua
-- `holder` is the window that holds the view, as long as nobody knows that its page was seen (see view.lua).
local reached, passed_stages, is_open, holder = 0, 0, false, nil
for id = 1, ids do
  local key = 4 + 3 * id
  local window = call('GET', KEYS[key])
  is_open = is_open or window and window ~= '0'
  if window == '1' then holder = KEYS[key] end
  reached = math.max(reached, tonumber(call('GET', KEYS[key + 1]) or 0))
  passed_stages = math.max(passed_stages, number_of[call('GET', KEYS[key + 2])] or 0)
end
-- The view of a new cookie whose page did not report yet is that of its stand-in.
local stand_in = KEYS[7 + 3 * ids]
if stand_in and call('GET', KEYS[7]) == 'p' and call('GET', stand_in) == '1' then holder = stand_in end
if reached == 0 and not is_open then return answer end

if holder then count_seen(holder, reading, total, unsettled, name, bucket, changed, subject) end

local function count_of(field) return tonumber(redis.pcall('HGET', reading, field)) or 0 end

-- Counts a stage if it is below the limit, the count of the stage before it. Returns 1 if it was.
local function add(field, limit)
  if count_of(field) >= limit then return 0 end
  call('HINCRBY', reading, field, 1)
  return 1
end

local limit = count_of('seen')
for bin = 1, bins do
  local field = ARGV[FIRST + bin - 1]
  if bin > reached then answer[1] = add(field, limit) end
  limit = math.min(limit, count_of(field))
end
if bins > reached then
  for id = 1, ids do call('SET', KEYS[5 + 3 * id], bins, 'EX', pass_life) end
end
local number_new = answer[1]
for stage = passed_stages + 1, reached_stages do
  answer[stage + 1] = add(ARGV[FIRST_STAGE + stage - 1], count_of(ARGV[FIRST]))
  number_new = number_new + answer[stage + 1]
end
if reached_stages > passed_stages then
  local last_stage = ARGV[FIRST_STAGE + reached_stages - 1]
  for id = 1, ids do call('SET', KEYS[6 + 3 * id], last_stage, 'EX', pass_life) end
end
if number_new > 0 then mark_changed(changed, subject) end
return answer
