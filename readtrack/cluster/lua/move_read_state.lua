-- Gives a category that moves to another partition the read state that is right there, after processes with the old and
-- with the new number of partitions were both at work.
-- Guarantees: whatever was published last, by either, stays unread for everybody who has not read it since; a dot may
-- come on once too often. To move again, with the same or a later state, keeps these.
-- KEYS: since when this partition knows publications; when the category was published to; its states, in each form
-- ARGV: since when the old partition knows publications ('' for never); when the category was published to there (µs, 0
--       for never); for each form the old state as DUMP gave it, or '' for none that can be used here
-- Returns: number of states that were taken from the old partition
local call = redis.call
local began, published = call('GET', KEYS[1]) or '', tonumber(call('GET', KEYS[2]) or 0)
local old_began, old_published = ARGV[1], tonumber(ARGV[2])
local FIRST_STATE, FIRST_OLD_STATE = 3, 3
-- The move copies the time, too, so a time of its own shows that processes with the new number were here.
local is_used = began ~= '' and began ~= old_began

if published > old_published then return 0 end

-- What was read here may have been read before the last publication there.
local is_outdated = is_used and old_published >= tonumber(began)

local taken = 0
for index = 0, #KEYS - FIRST_STATE do
  local state, old_state = KEYS[FIRST_STATE + index], ARGV[FIRST_OLD_STATE + index]
  if is_outdated then call('UNLINK', state) end
  if old_state ~= '' and call('EXISTS', state) == 0 then
    call('RESTORE', state, 0, old_state)
    taken = taken + 1
  end
end
if old_published > 0 then call('SET', KEYS[2], string.format('%.0f', old_published)) end
return taken
