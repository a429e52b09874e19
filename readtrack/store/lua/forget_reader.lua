-- Forgets an anonymous reader, because the visitor has signed in.
-- Guarantees: of several callers only one gets the number. The number is never given to another reader.
-- KEYS: hashes that may have the reader's number. ARGV: the reader
-- Returns: the number that the reader had; nil for none
local call = redis.call
local reader = ARGV[1]

for _, hash in ipairs(KEYS) do
  local number = call('HGET', hash, reader)
  if number then
    -- Another field takes the reader's place, because a setting limits how many numbers are given.
    call('HSET', hash, '!' .. number, number)
    call('HDEL', hash, reader)
    return tonumber(number)
  end
end
return nil
