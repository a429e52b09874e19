-- Included at the beginning of the scripts that count views.
-- Takes the numbers of the settings (store/limits.py): window (s), most hits in a rate window, rate that marks a robot,
--   lifetimes (s) of a bucket, of a minute's visitors, and of a rate; what a view adds to its subject in the bucket: 1, or
--   0 where rankings go by views that were seen.
-- Gives: call, the outcomes of a view, these numbers by name, mark_unsettled, mark_changed, without_prefix; how many keys
--   the parts need of a view: SEEN_KEYS where its page was seen, SUBJECT_KEYS with the subject in their name, MODEL_KEYS
--   with only its model.
local call = redis.call
local COUNTED, RATE, REPEAT, HONEYPOT, BROKEN = 1, 2, 3, 4, 5
-- Who tells of a view: the page itself (0), a later report on it (1), or one with a cookie that has come back, so that
-- the view may have been counted by the id that stood in for the cookie (2).
-- A report on a page whose view only the server counts (3) counts none.
local BY_REPORT_WITH_COOKIE, BY_REPORT_WITHOUT_VIEW = 2, 3
-- settings
-- parts: keys

-- unsettled.lua
-- changed.lua

-- Returns the name of a counter in the list of unsettled ones: its key without the prefix that all keys begin with.
local function without_prefix(key, unsettled)
  local prefix = string.match(unsettled, '^(.*)views:unsettled')
  return string.sub(key, #prefix + 1)
end
