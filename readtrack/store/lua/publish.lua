-- Makes categories unread for everybody but an author who had read everything before.
-- Guarantees: a page that was built before this cannot mark the category read afterwards (see mark_read.lua). Read state
-- that was kept under other settings is removed too, so that switching back cannot bring back reads that are out of date.
-- A publication that is sent again with its token within its lifetime raises no number.
-- KEYS: when this Redis began to know publications;
--       per category: state, published, sent, state of the three other kinds; at the end, for authors given by name: readers
-- ARGV: 'bitmap' or 'sequence', how long the time and the token of a publication are kept (s);
--       per category: number of items, author or '', 1 if the category is the author's own text, token or ''
-- Returns: number of categories
local call = redis.call
local FIXED, OWNED, TOLD = 2, 6, 4
local is_sequence, life = ARGV[1] == 'sequence', ARGV[2]
local count = (#ARGV - FIXED) / TOLD
local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
call('SET', KEYS[1], now, 'NX')

local function is_known(key, token)
  if token == '' then return false end
  call('ZREMRANGEBYSCORE', key, '-inf', time[1] - life)
  local is_new = call('ZADD', key, 'NX', time[1], token) == 1
  call('EXPIRE', key, life)
  return not is_new
end

for index = 1, count do
  local key, arg = 2 + OWNED * (index - 1), FIXED + 1 + TOLD * (index - 1)
  local state = KEYS[key]
  local items, author, is_own, token = ARGV[arg], ARGV[arg + 1], ARGV[arg + 2] == '1', ARGV[arg + 3]
  if author ~= '' and #KEYS > OWNED * count + 1 then author = call('HGET', KEYS[#KEYS], author) or '' end
  call('UNLINK', KEYS[key + 3], KEYS[key + 4], KEYS[key + 5])
  call('SET', KEYS[key + 1], now, 'EX', life)
  if not is_sequence then
    local has_read = author ~= '' and (is_own or call('GETBIT', state, author) == 1)
    call('UNLINK', state)
    if has_read then call('SETBIT', state, author, 1) end
  elseif not is_known(KEYS[key + 2], token) then
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
  end
end
return count
