-- Records the views of one hit.
-- KEYS: rate (or the next key again, if rate.lua counted the hit), unsettled, trending bucket, changed;
--       per view: total, model's visitors of the minute, hll (or total again), what the parts need where the page was seen,
--       window[, window of the visitor's fallback id, or the stand-in's]; what the parts need: keys with the subject, then
--       keys with its model; with options, the keys of all effects
-- ARGV: 1 what rate.lua returned, or 0; 2 refused hits in a rate window that may open windows of new cookies, 0 for a
--       visitor without a new cookie; 3 who tells of the hit; 4 1 if the page was seen, or 0; 5 keys per view;
--       6 number of views; 7 visitor; subject of each view[; options]
-- Returns: per view 1 counted, 2 rate, 3 repeat, 4 honeypot, 5 total is no number
--
-- `options` is JSON, sent where a view has effects (store/effects.py): per view
--   {{name, number of its first key, number of its last key, argument}, ...}
--   The keys of all effects are numbered from 1.
-- common.lua
-- parts: functions
local SHARED_KEYS, VISITOR = 4, 7
local rate, unsettled, bucket, changed, visitor = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[VISITOR]
local counted_hits, newcomers = tonumber(ARGV[1]), tonumber(ARGV[2])
local teller, is_seen = tonumber(ARGV[3]), ARGV[4] == '1'
local keys_per_view, views = tonumber(ARGV[5]), tonumber(ARGV[6])
local options = ARGV[VISITOR + views + 1] and cjson.decode(ARGV[VISITOR + views + 1])
local counters = is_seen and 3 + SEEN_KEYS or 3 -- keys of a view before its windows
local own_keys = keys_per_view - SUBJECT_KEYS - MODEL_KEYS -- keys of a view without those of the parts
local apply_effects
local before_effects = SHARED_KEYS + keys_per_view * views -- keys before those of the effects

if options then
  local effects = {}

  function effects.set(key) call('SADD', KEYS[key], visitor) end

  -- A visitor who is new to the day's set is one more in the running count, which is the next key.
  function effects.daily(key, life)
    if call('SADD', KEYS[key], visitor) == 0 then return end
    if call('SCARD', KEYS[key]) == 1 then call('EXPIRE', KEYS[key], life) end
    call('INCR', KEYS[key + 1])
  end

  function effects.bitmap(key, reader) call('SETBIT', KEYS[key], reader, 1) end

-- parts: effects
  function apply_effects(view)
    for _, effect in ipairs(options[view]) do
      local name, first_key, last_key, argument = unpack(effect)
      effects[name](before_effects + first_key, argument, before_effects + last_key)
    end
  end
end

local outcomes, has_counted, hits = {}, false, nil
for view = 1, views do
  local key = SHARED_KEYS + 1 + keys_per_view * (view - 1)
  local total, minute_visitors, hll, own_window = KEYS[key], KEYS[key + 1], KEYS[key + 2], KEYS[key + counters]
  local seen_key, other_window = is_seen and key + 3, nil
  if own_keys > counters + 1 then other_window = KEYS[key + counters + 1] end
  local subject_key = key + own_keys
  local model_key = subject_key + SUBJECT_KEYS
  local subject = ARGV[VISITOR + view]
-- view.lua
  if outcome == COUNTED then
    has_counted = true
    if options then apply_effects(view) end
  end
  outcomes[view] = outcome
end

-- A report that counts nothing is taken back, because the page's own request was a hit already.
if teller > 0 and newcomers == 0 and not has_counted and rate ~= unsettled then call('DECR', rate) end
return outcomes
