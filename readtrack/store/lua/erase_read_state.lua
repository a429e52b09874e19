-- Erases one reader from the read state of categories: bitmaps, or strings of 4 bytes a reader.
-- Guarantees: no state grows, and keys of another type stay as they are. A copy of the state from before is of an earlier
-- publication than one from now, so a flush that stores such a copy afterwards brings nothing back for long: the next
-- flush stores the state from now, and the later publication wins.
-- KEYS: keys of read state that changed; per category: state, time of its last publication
-- ARGV: 'bit' or 'slot', the reader's number, '1' to change nothing
-- Returns: number of states changed, or that would be changed
local call = redis.call
local changed = KEYS[1]
local kind, reader, is_dry_run = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- Redis would round a number.
local function text_of(time)
  return string.format('%.0f', time)
end

-- A string that is too short knows nothing of the reader.
local has_read, clear = {}, {}
function has_read.bit(state)
  return reader / 8 < call('STRLEN', state) and call('GETBIT', state, reader) == 1
end
function clear.bit(state)
  call('SETBIT', state, reader, 0)
end

local slot = '#' .. reader + 1
function has_read.slot(state)
  return 4 * (reader + 1) < call('STRLEN', state) and call('BITFIELD', state, 'GET', 'u32', slot)[1] > 0
end
function clear.slot(state)
  call('BITFIELD', state, 'SET', 'u32', slot, 0)
end

local erased = 0
for index = 2, #KEYS, 2 do
  local state, published = KEYS[index], KEYS[index + 1]
  if call('TYPE', state).ok == 'string' and has_read[kind](state) then
    erased = erased + 1
    if not is_dry_run then
      clear[kind](state)
      call('SET', published, text_of(tonumber(call('GET', published) or 0) + 1))
      call('ZADD', changed, text_of(now), state)
    end
  end
end
return erased
