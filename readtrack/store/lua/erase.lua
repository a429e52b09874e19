-- Erases one visitor from sets, or one reader from bitmaps or from strings of 4 bytes a reader.
-- Guarantees: no key grows, and keys of another type stay as they are.
-- KEYS: any. ARGV: 'member', 'bit' or 'slot'; the member, or the reader's number. Returns: number of keys changed
local kind, who = ARGV[1], ARGV[2]
local changed = 0

local erase = {}
function erase.member(key) return redis.call('SREM', key, who) == 1 end

-- A string that is too short knows nothing of the reader.
function erase.bit(key)
  local is_known = who / 8 < redis.call('STRLEN', key) and redis.call('GETBIT', key, who) == 1
  return is_known and redis.call('SETBIT', key, who, 0)
end

function erase.slot(key)
  if 4 * (who + 1) >= redis.call('STRLEN', key) then return false end
  local slot = '#' .. who + 1
  return redis.call('BITFIELD', key, 'GET', 'u32', slot)[1] > 0 and redis.call('BITFIELD', key, 'SET', 'u32', slot, 0)
end

for _, key in ipairs(KEYS) do
  if redis.call('TYPE', key).ok == (kind == 'member' and 'set' or 'string') and erase[kind](key) then
    changed = changed + 1
  end
end
return changed
