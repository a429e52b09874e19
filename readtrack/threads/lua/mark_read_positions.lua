-- Marks threads read for one reader up to the time when the page began.
-- Guarantees: whatever is published after the page began is later than the position, so it stays unread. When the page
-- began is told as in mark_read.lua. A position never falls. A thread with nothing new gets no position, because it
-- needs none. A reader has a bounded number of positions. While the read state of this Redis is not restored, nothing is
-- marked.
-- KEYS: when this Redis began to know publications, keys of read state that changed; when everybody has read all; positions of the reader; per thread: its publications
-- ARGV: how long a publication can be unread (µs), 1 for a reader who can have positions,
--       how long ago the page began (µs; '' if the next argument is a time of ours),
--       when the page began by our clock (µs; '' for now), lifetime of positions (s), most positions of a reader;
--       per thread: its key
-- Returns: per thread 1 read, 0 published since the page began; then our time (µs). Nothing if this Redis has not begun
local call = redis.call
local began_key, changed, started_key, positions = unpack(KEYS, 1, 4)
local kept_for, can_read = tonumber(ARGV[1]), ARGV[2] == '1'
local page_age, page_began = tonumber(ARGV[3]), tonumber(ARGV[4])
local positions_life, most_positions = ARGV[5], tonumber(ARGV[6])
local KEYS_BEFORE_THREADS, ARGUMENTS_BEFORE_THREADS = 4, 6

-- since.lua
-- positions.lua
-- raise.lua

if call('EXISTS', began_key) == 0 then return false end

local since = page_since()
local times = call('HMGET', positions, ALL, unpack(ARGV, ARGUMENTS_BEFORE_THREADS + 1))
local floor = floor_of(started_key, times[1])
local outcomes, raised = {}, {}
for thread = 1, #KEYS - KEYS_BEFORE_THREADS do
  local news, key = KEYS[KEYS_BEFORE_THREADS + thread], ARGV[ARGUMENTS_BEFORE_THREADS + thread]
  local read_before = math.max(floor, tonumber(times[thread + 1] or 0))
  outcomes[thread] = 0
  if can_read and since > 0 then
    if count_since(news, text_of(math.max(since, read_before))) == 0 then outcomes[thread] = 1 end
    if since > read_before and count_since(news, text_of(read_before)) > 0 then
      raised[#raised + 1] = key
      raised[#raised + 1] = since
    end
  end
end
raise(positions, raised)
outcomes[#outcomes + 1] = text_of(now)
return outcomes
