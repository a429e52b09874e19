-- Gives a Redis that lost its read state, or was restored from an older snapshot, what SQL has of categories.
-- Guarantees: changes nothing in a Redis that has begun, or that somebody else restores. What was published later than
-- SQL's copy stays as it is.
-- KEYS: when this Redis began to know publications, who restores it; per category: state, published, scratch
-- ARGV: the id of the restoration; 'or' if a state that Redis has of the same publication is joined to it, bit by bit; per category: SQL's state,
--       time of its last publication (µs)
-- Returns: number of categories that were restored; -1 if nothing was changed
local call = redis.call
local is_joined = ARGV[2] == 'or'

-- restoring.lua

if not is_restored_by(KEYS[1], KEYS[2], ARGV[1]) then return -1 end

local function join(state, stored, scratch)
  call('SET', scratch, stored)
  call('BITOP', 'OR', state, state, scratch)
  call('UNLINK', scratch)
end

local categories = (#KEYS - 2) / 3
local restored = 0
for index = 0, categories - 1 do
  local state, published_key, scratch = unpack(KEYS, 3 * index + 3, 3 * index + 5)
  local stored, stored_published = unpack(ARGV, 2 * index + 3, 2 * index + 4)
  local published = tonumber(call('GET', published_key) or 0)
  if published <= tonumber(stored_published) then
    if stored_published ~= '0' then call('SET', published_key, stored_published) end
    if is_joined and published == tonumber(stored_published) then
      join(state, stored, scratch)
    elseif stored == '' then
      call('UNLINK', state)
    else
      call('SET', state, stored)
    end
    restored = restored + 1
  end
end
return restored
