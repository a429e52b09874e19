-- Included at the beginning of record.lua and record_batch.lua.
-- Takes ARGV 1 to 10, which all hits have in common: window (s), most hits in a rate window, rate that marks a robot,
--   lifetimes (s) of an hour, of a model's hour, of a bucket, of a minute's visitors, of a rate, and of a day's visitors;
--   what a view adds to its subject in the bucket: 1, or 0 where rankings go by views that were seen.
-- Gives: call, the outcomes of a view, these numbers by name, mark_unsettled.
local call = redis.call
local COUNTED, RATE, REPEAT, HONEYPOT, BROKEN = 1, 2, 3, 4, 5
-- Who tells of a view: the page itself (0), its script, or its script in a browser whose cookie has come back, so that
-- the view may have been counted by the id that stood in for the cookie.
-- A script that tells of a page whose view only the server counts (3) counts none.
local BY_SCRIPT_WITH_COOKIE, BY_SCRIPT_WITHOUT_VIEW = 2, 3
local COMMON = 10
local window, most_hits, robot = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local hour_life, model_hour_life, bucket_life, minute_life = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local rate_window, day_life, view_weight = ARGV[8], ARGV[9], ARGV[10]

-- unsettled.lua
