-- Counts how far a visitor has read the text of a subject: views >= seen >= engaged >= each bin, and engaged >= read.
-- Guarantees: engagement counts once in a visitor's pass, and only after a view in an open window. A read counts once, and
-- only after engagement. A later bin counts the earlier ones with it. An engaged view was seen. No stage counts more than
-- the one before it, and none more than the views. A robot of the honeypot reads nothing.
-- The subject is marked as changed, so that the next flush finds it.
-- KEYS: rate (or the next key again, if the caller looked at it), unsettled, reading, changed, trending bucket, total;
--       per id of the visitor: window, pass of engagement, pass of the read; window of the stand-in, or nothing
-- ARGV: rate that marks a robot, name of the hash in `unsettled`, subject, lifetimes of a bucket and of a pass (s), what a
--       view adds to its subject in the bucket, number of ids, 1 if the text was read, or 0; the fields: that of reads,
--       those of engagement and of each bin that was reached
-- Returns: {1 if the last bin is new, 1 if the read is new}
local call = redis.call
local rate, unsettled, reading, changed, bucket, total = unpack(KEYS, 1, 6)
local robot, name, subject, bucket_life, pass_life, view_weight = tonumber(ARGV[1]), unpack(ARGV, 2, 6)
local ids, is_read, read_field, FIRST = tonumber(ARGV[7]), ARGV[8] == '1', ARGV[9], 10
local bins = #ARGV - FIRST + 1
if rate ~= unsettled and tonumber(call('GET', rate) or 0) >= robot then return {0, 0} end

-- unsettled.lua
-- changed.lua
-- functions.lua
-- `holder` is the window that holds the view, as long as nobody knows that its page was seen (see view.lua).
local reached, was_read, is_open, holder = 0, false, false, nil
for id = 1, ids do
  local key = 4 + 3 * id
  local window = call('GET', KEYS[key])
  is_open = is_open or window and window ~= '0'
  if window == '1' then holder = KEYS[key] end
  reached = math.max(reached, tonumber(call('GET', KEYS[key + 1]) or 0))
  was_read = was_read or call('EXISTS', KEYS[key + 2]) == 1
end
-- The view of a new cookie whose page did not report yet is that of its stand-in.
local stand_in = KEYS[7 + 3 * ids]
if stand_in and call('GET', KEYS[7]) == 'p' and call('GET', stand_in) == '1' then holder = stand_in end
if reached == 0 and not is_open then return {0, 0} end

if holder then count_seen(holder, reading, total, unsettled, name, bucket, changed, subject) end

local function count_of(field) return tonumber(call('HGET', reading, field)) or 0 end

-- Counts a stage if it is below the limit, the count of the stage before it. Returns 1 if it was.
local function add(field, limit)
  if count_of(field) >= limit then return 0 end
  call('HINCRBY', reading, field, 1)
  return 1
end

local is_new, is_new_read, limit = 0, 0, count_of('seen')
for bin = 1, bins do
  local field = ARGV[FIRST + bin - 1]
  if bin > reached then is_new = add(field, limit) end
  limit = math.min(limit, count_of(field))
end
if bins > reached then
  for id = 1, ids do call('SET', KEYS[5 + 3 * id], bins, 'EX', pass_life) end
end
if is_read and not was_read then
  is_new_read = add(read_field, count_of(ARGV[FIRST]))
  for id = 1, ids do call('SET', KEYS[6 + 3 * id], 1, 'EX', pass_life) end
end
if is_new + is_new_read > 0 then mark_changed(changed, subject) end
return {is_new, is_new_read}
