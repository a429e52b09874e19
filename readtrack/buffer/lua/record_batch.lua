-- Records the views of many hits, in their order.
-- Guarantees: those of view.lua, for each hit. Sent again, it counts none of them twice.
-- KEYS: those of the groups of hits, one group after the other. ARGV: for each group its kind and its number of hits, then
--   what belongs to the kind:
--   "new keys": hits of one view each without options, of one model and minute.
--     ARGV: those of record.lua from 1 to 4, number of keys of each hit, where the subject begins in its total's key,
--       and where the visitor begins in the window's (bytes from 1)
--     KEYS of the group: unsettled, trending bucket, changed, model's visitors of the minute, what the parts need with the
--       model;
--     KEYS of each hit: rate, total, hll (or total again), what the parts need where the page was seen, window[, other window],
--       what the parts need with the subject
--   "keys as before": likewise, but the group has the KEYS of the group before, which are not sent again
--   "whole hits": hits of any kind; each has the KEYS of record.lua and its ARGV, behind the number of both
-- Returns: per hit of a group of "whole hits" what record.lua returns, of all others a number
-- common.lua
-- parts: functions
local function record(KEYS, ARGV)
-- record.lua
end

local outcomes, next_key, next_arg = {}, 1, 1
local unsettled, bucket, changed, minute_visitors, model_key

local function record_group(number_of_hits)
  local counted_hits, newcomers, teller, is_seen, keys_per_hit, subject_at, visitor_at =
    unpack(ARGV, next_arg, next_arg + 6)
  next_arg = next_arg + 7
  local windows = is_seen == '1' and 3 + SEEN_KEYS or 3 -- keys of a hit before its windows
  counted_hits, newcomers, teller = tonumber(counted_hits), tonumber(newcomers), tonumber(teller)
  keys_per_hit = tonumber(keys_per_hit)
  local own_keys = keys_per_hit - SUBJECT_KEYS -- keys of a hit without those of the parts
  for _ = 1, number_of_hits do
    local subject_key = next_key + own_keys
    local rate, total, hll = unpack(KEYS, next_key, next_key + 2)
    local seen_key = is_seen == '1' and next_key + 3
    local own_window, other_window = unpack(KEYS, next_key + windows, subject_key - 1)
    local subject = string.sub(total, subject_at)
    local visitor = string.sub(own_window, visitor_at, -#subject - 2)
    local hits
-- view.lua
    if teller > 0 and newcomers == 0 and outcome ~= COUNTED and rate ~= unsettled then call('DECR', rate) end
    outcomes[#outcomes + 1] = outcome
    next_key = next_key + keys_per_hit
  end
end

local function record_whole_hits(number_of_hits)
  for _ = 1, number_of_hits do
    local number_of_keys, number_of_args = ARGV[next_arg], ARGV[next_arg + 1]
    next_arg = next_arg + 2
    local own_keys, own_args = {}, {}
    for _ = 1, number_of_keys do
      own_keys[#own_keys + 1] = KEYS[next_key]
      next_key = next_key + 1
    end
    for _ = 1, number_of_args do
      own_args[#own_args + 1] = ARGV[next_arg]
      next_arg = next_arg + 1
    end
    outcomes[#outcomes + 1] = record(own_keys, own_args)
  end
end

while next_arg <= #ARGV do
  local kind, number_of_hits = ARGV[next_arg], ARGV[next_arg + 1]
  next_arg = next_arg + 2
  if kind == 'whole hits' then
    record_whole_hits(number_of_hits)
  else
    if kind == 'new keys' then
      unsettled, bucket, changed, minute_visitors = unpack(KEYS, next_key, next_key + 3)
      model_key = next_key + 4
      next_key = model_key + MODEL_KEYS
    end
    record_group(number_of_hits)
  end
end
return outcomes
