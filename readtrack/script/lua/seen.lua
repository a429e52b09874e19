-- Counts the view as seen, once. Joined into view.lua, for a view that counted or is a repeat.
-- Takes key: reading. Takes what view.lua takes, and count_seen.
local holder = own_window
local state = call('GET', holder)
if other_window and (not state or state == 'p' or state == '0') then
  holder = other_window
  state = call('GET', holder)
end
if state == '1' then
  count_seen(holder, reading, total, unsettled, without_prefix(reading, unsettled), bucket, changed, subject)
end
