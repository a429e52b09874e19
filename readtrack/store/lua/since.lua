-- Included in the scripts that mark categories read.
-- Takes: call; page_age, how long ago the page began (µs; nil if only the next is known); page_began, when it began by
--   our clock (µs; nil for now).
-- Gives: now (µs), page_since.
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- Returns when the page began (µs): the earlier of two times; 0 if that time proves nothing, because our clock was set
-- back since.
local function page_since()
  local since = page_began or now
  if page_age then return math.min(now - page_age, since) end
  if since > now then return 0 end
  return since
end
