-- Makes categories unread, by raising the number of publications.
-- Guarantees, KEYS, ARGV and Returns: as in publish.lua.
local call = redis.call
local token_life = ARGV[3] -- s

-- Notes the publication, because unpublish_sequence.lua has to know all that came after another one.
local function is_sent_again(category)
  local sent, token = category.sent, category.token
  if token == '' then token = 'at ' .. category.now end
  if category.items ~= '1' then token = token .. ':' .. category.items end
  call('ZREMRANGEBYSCORE', sent, '-inf', category.now - token_life * 1000000)
  local added = call('ZADD', sent, 'NX', category.now, token)
  call('EXPIRE', sent, token_life)
  return category.token ~= '' and added == 0
end

local function publish(category)
  if is_sent_again(category) then return end
  local state, items = category.state, category.items
  local published = call('BITFIELD', state, 'INCRBY', 'u32', 0, items)[1]
  if not category.author then return end
  local slot = '#' .. category.author + 1
  if category.is_own then
    call('BITFIELD', state, 'SET', 'u32', slot, published + 1)
  elseif call('BITFIELD', state, 'GET', 'u32', slot)[1] > 0 then
    -- What was new to the author before stays new.
    call('BITFIELD', state, 'INCRBY', 'u32', slot, items)
  end
end

-- publish.lua
