-- Makes categories unread for everybody but an author who had read all before.
-- Guarantees: a page built before this cannot mark the category read afterwards (see mark_read.lua). Read state
-- that was kept under other settings goes too, so that switching back cannot bring back reads that are out of date.
-- KEYS: per category: state, news, state of the three other families[; after them all: readers, where authors are names]
-- ARGV: 'bitmap' or 'sequence'; per category: how many news, author or '', 1 if the category is the author's own text
-- Returns: number of categories
local call = redis.call
local is_sequence = ARGV[1] == 'sequence'
local count = (#ARGV - 1) / 3
local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
for index = 1, count do
  local first = 5 * index - 4
  local state = KEYS[first]
  local items, author, is_own = ARGV[3 * index - 1], ARGV[3 * index], ARGV[3 * index + 1] == '1'
  if author ~= '' and #KEYS > 5 * count then author = call('HGET', KEYS[#KEYS], author) or '' end
  call('UNLINK', KEYS[first + 2], KEYS[first + 3], KEYS[first + 4])
  call('SET', KEYS[first + 1], now, 'EX', 86400)
  if is_sequence then
    local published = call('BITFIELD', state, 'INCRBY', 'u32', 0, items)[1]
    if author ~= '' then
      local slot = '#' .. author + 1
      if is_own then
        call('BITFIELD', state, 'SET', 'u32', slot, published + 1)
      elseif call('BITFIELD', state, 'GET', 'u32', slot)[1] > 0 then
        -- What was new to the author stays as much as it was.
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
