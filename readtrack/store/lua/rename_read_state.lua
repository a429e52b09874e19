-- Moves the read state of categories to other names. Where the new name has some already, the two become one.
-- Guarantees: what was published under either name is unread. What a reader has read under the new name only may be
-- unread once more.
-- KEYS: per category: its bitmaps, by id and by ordinal, its numbers, by id and by ordinal, the time of its last
--       publication, and its publications by token; then the same six under the new name
-- ARGV: none. Returns: number of keys moved
local call = redis.call
local PER_NAME = 6
local moved = 0

local function time_of(key)
  return tonumber(call('GET', key) or 0)
end

-- A publication removes a bitmap, so of two the one with the later publication is right.
local function move_bits(key, new_key, published, new_published)
  if published < new_published then
    call('UNLINK', key)
  elseif call('EXISTS', key) == 0 then
    if published > new_published then call('UNLINK', new_key) end
  elseif published > new_published then
    call('RENAME', key, new_key)
  else
    call('BITOP', 'OR', new_key, new_key, key)
    call('UNLINK', key)
  end
end

local function publications(key)
  return call('BITFIELD', key, 'GET', 'u32', 0)[1]
end

-- The one with more in it has the readers. What was read in the other one only is new again.
local function move_numbers(key, new_key)
  if call('EXISTS', key) == 0 or call('RENAMENX', key, new_key) == 1 then return end
  local old, new = publications(key), publications(new_key)
  local others = old
  if call('BITCOUNT', key) > call('BITCOUNT', new_key) then
    others = new
    call('RENAME', key, new_key)
  else
    call('UNLINK', key)
  end
  call('BITFIELD', new_key, 'INCRBY', 'u32', 0, others)
end

local function move(first, last)
  local bits, ordinal_bits, numbers, ordinal_numbers, published, sent = unpack(KEYS, first, last)
  local new_bits, new_ordinal_bits, new_numbers, new_ordinal_numbers, new_published, new_sent
    = unpack(KEYS, last + 1, last + PER_NAME)
  local time, new_time = time_of(published), time_of(new_published)
  move_bits(bits, new_bits, time, new_time)
  move_bits(ordinal_bits, new_ordinal_bits, time, new_time)
  move_numbers(numbers, new_numbers)
  move_numbers(ordinal_numbers, new_ordinal_numbers)
  if time > new_time then call('RENAME', published, new_published) else call('UNLINK', published) end
  if call('EXISTS', sent) == 1 and call('RENAMENX', sent, new_sent) == 0 then
    call('ZUNIONSTORE', new_sent, 2, new_sent, sent, 'AGGREGATE', 'MIN')
    call('UNLINK', sent)
  end
end

for first = 1, #KEYS, 2 * PER_NAME do
  local last = first + PER_NAME - 1
  moved = moved + call('EXISTS', unpack(KEYS, first, last))
  pcall(move, first, last)  -- a key of another type stops its category, and no other
end
return moved
