-- Takes keys out of use, to move them to another partition: nobody counts under the names that they get.
-- KEYS: unsettled; per key: its name, the one that it gets, and the one that it gets while it is unsettled
-- ARGV: per key: its name in `unsettled`, "" for a key that is not in it
-- Returns: number of keys taken
local call = redis.call
local unsettled = KEYS[1]
local taken = 0
for index = 1, #ARGV do
  local key, settled_name, unsettled_name = unpack(KEYS, 3 * index - 1, 3 * index + 1)
  if call('EXISTS', key) == 1 then
    local was_marked = ARGV[index] ~= '' and call('ZREM', unsettled, ARGV[index]) == 1
    call('RENAME', key, was_marked and unsettled_name or settled_name)
    taken = taken + 1
  end
end
return taken
