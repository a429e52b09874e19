-- Makes categories unread, by removing the bits of all readers but an author who had read everything before.
-- Guarantees, KEYS, ARGV and Returns: as in publish.lua. Tokens make no difference, because nothing is counted.
local call = redis.call

local function publish(category)
  local state, author = category.state, category.author
  local has_read = author and (category.is_own or call('GETBIT', state, author) == 1)
  call('UNLINK', state)
  if has_read then call('SETBIT', state, author, 1) end
end

-- publish.lua
