-- Erases one visitor from sets or bitmaps.
-- Guarantees: no key grows, and keys of another type stay as they are.
-- KEYS: any. ARGV: 'member' or 'bit'; the member, or the reader's number; '1' to change nothing.
-- Returns: number of keys changed, or that would be changed
local kind, who, is_dry_run = ARGV[1], ARGV[2], ARGV[3] == '1'
local changed = 0

local erase = {}
function erase.member(key)
  if is_dry_run then return redis.call('SISMEMBER', key, who) == 1 end
  return redis.call('SREM', key, who) == 1
end

-- A string that is too short knows nothing of the reader.
function erase.bit(key)
  local is_known = who / 8 < redis.call('STRLEN', key) and redis.call('GETBIT', key, who) == 1
  return is_known and (is_dry_run or redis.call('SETBIT', key, who, 0))
end

for _, key in ipairs(KEYS) do
  if redis.call('TYPE', key).ok == (kind == 'member' and 'set' or 'string') and erase[kind](key) then
    changed = changed + 1
  end
end
return changed
