-- Copies keys of positions, for SQL.
-- Guarantees: each copy and the mark that it changed are of one moment.
-- KEYS: when this Redis began to know publications, keys of read state that changed; the keys
-- ARGV: most bytes of all copies together
-- Returns: for the first keys, as many as the bytes allow, at least one: when the key changed (µs, '' if SQL has it);
--          names and times (µs) in turn, with the name '' for a key of one time. Nothing if this Redis has not begun.
local call = redis.call
local began_key, changed = KEYS[1], KEYS[2]
local most_bytes = tonumber(ARGV[1])
if call('EXISTS', began_key) == 0 then return false end

local function content_of(key)
  local type = call('TYPE', key).ok
  if type == 'hash' then return call('HGETALL', key) end
  if type == 'zset' then return call('ZRANGE', key, 0, -1, 'WITHSCORES') end
  if type == 'string' then return {'', call('GET', key)} end
  return {}
end

local copies, bytes = {}, 0
for index = 3, #KEYS do
  if bytes > most_bytes then break end
  local copy = content_of(KEYS[index])
  for _, text in ipairs(copy) do bytes = bytes + #text end
  table.insert(copy, 1, call('ZSCORE', changed, KEYS[index]) or '')
  copies[#copies + 1] = copy
end
return copies
