-- Makes categories unread for everybody but an author who had read everything before.
-- Guarantees: a page that was built before this cannot mark the category read afterwards (see mark_read.lua). Read state
-- that was kept under other settings is removed too, so that switching back cannot bring back reads that are out of date.
-- KEYS: per category: state, published, state of the three other kinds; at the end, for authors given by name: readers
-- ARGV: 'bitmap' or 'sequence', how long the time of a publication is kept (s);
--       per category: number of items, author or '', 1 if the category is the author's own text
-- Returns: number of categories
local call = redis.call
local FIXED = 2
local is_sequence, life = ARGV[1] == 'sequence', ARGV[2]
local count = (#ARGV - FIXED) / 3
local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
for index = 1, count do
  local key, arg = 5 * index - 4, FIXED + 3 * index - 2
  local state = KEYS[key]
  local items, author, is_own = ARGV[arg], ARGV[arg + 1], ARGV[arg + 2] == '1'
  if author ~= '' and #KEYS > 5 * count then author = call('HGET', KEYS[#KEYS], author) or '' end
  call('UNLINK', KEYS[key + 2], KEYS[key + 3], KEYS[key + 4])
  call('SET', KEYS[key + 1], now, 'EX', life)
  if is_sequence then
    local published = call('BITFIELD', state, 'INCRBY', 'u32', 0, items)[1]
    if author ~= '' then
      local slot = '#' .. author + 1
      if is_own then
        call('BITFIELD', state, 'SET', 'u32', slot, published + 1)
      elseif call('BITFIELD', state, 'GET', 'u32', slot)[1] > 0 then
        -- What was new to the author before stays new.
        call('BITFIELD', state, 'INCRBY', 'u32', slot, items)
      end
    end
  else
    local has_read = author ~= '' and (is_own or call('GETBIT', state, author) == 1)
    call('UNLINK', state)
    if has_read then call('SETBIT', state, author, 1) end
  end
end
return count
