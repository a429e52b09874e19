-- Forgets that read state changed, because SQL has a copy of it.
-- Guarantees: what changed since the copy was made stays noted.
-- KEYS: keys of read state that changed. ARGV: per key of read state: its name, when it changed by the copy (µs)
-- Returns: number of keys that are not noted any more
local call = redis.call
local forgotten = 0
for index = 1, #ARGV, 2 do
  local state, changed_at = ARGV[index], ARGV[index + 1]
  if call('ZSCORE', KEYS[1], state) == changed_at then
    forgotten = forgotten + call('ZREM', KEYS[1], state)
  end
end
return forgotten
