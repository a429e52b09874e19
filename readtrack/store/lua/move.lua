-- Moves keys to other names. Where the new name has a key already, the two become one.
-- Guarantees: views that were counted under either name stay counted once. A counter that holds SQL's count (a settled
-- one) and one that lacks it add up to a settled one; of two settled ones the higher stays, because both hold it.
-- Moving again moves only what has come to the old name since.
-- KEYS: unsettled; per key: its name, its new name
-- ARGV: per key: how two become one ("add"; "highest"; "keep", which keeps that of the new name; or the command that
--       unites them), its name in `unsettled`, its new name there (both "" for keys that are not in it), and "settled" or
--       "unsettled" for a counter from another partition, "" for any other key
-- Returns: number of keys moved
local call = redis.call
local unsettled = KEYS[1]
local moved = 0

-- unsettled.lua
local function is_marked(name)
  return name ~= '' and call('ZSCORE', unsettled, name)
end

-- A count that is no number stays as it is.
local function add_counts(key, new_key)
  if call('TYPE', key).ok ~= 'hash' then
    redis.pcall('INCRBY', new_key, call('GET', key))
    return
  end
  local counts = call('HGETALL', key)
  for index = 1, #counts, 2 do redis.pcall('HINCRBY', new_key, counts[index], counts[index + 1]) end
end

local function keep_highest(key, new_key)
  if call('TYPE', key).ok ~= 'hash' then
    local count = call('GET', key)
    if (tonumber(count) or 0) > (tonumber(call('GET', new_key)) or math.huge) then
      call('SET', new_key, count, 'KEEPTTL')
    end
    return
  end
  local counts = call('HGETALL', key)
  for index = 1, #counts, 2 do
    local field, count = counts[index], counts[index + 1]
    if tonumber(count) > tonumber(call('HGET', new_key, field) or 0) then call('HSET', new_key, field, count) end
  end
end

local function unite(command, key, new_key)
  if command == 'BITOP' then
    call('BITOP', 'OR', new_key, new_key, key)
  elseif command == 'PFMERGE' then
    call('PFMERGE', new_key, key)
  else
    call(command, new_key, new_key, key)
  end
end

local function merge(how, key, new_key)
  if how == 'add' then
    add_counts(key, new_key)
  elseif how == 'highest' then
    keep_highest(key, new_key)
  elseif how ~= 'keep' then
    unite(how, key, new_key)
  end
  call('UNLINK', key)
end

for index = 1, (#KEYS - 1) / 2 do
  local key, new_key = KEYS[2 * index], KEYS[2 * index + 1]
  local how, name, new_name, state = unpack(ARGV, 4 * index - 3, 4 * index)
  if call('EXISTS', key) == 1 then
    local lacks_sql = state == 'unsettled' or is_marked(name)
    if call('RENAMENX', key, new_key) == 1 then
      if lacks_sql then mark_unsettled(unsettled, new_name) end
    else
      local new_lacks_sql = is_marked(new_name)
      if name ~= '' and not lacks_sql and not new_lacks_sql then how = 'highest' end
      if not lacks_sql and new_lacks_sql then call('ZREM', unsettled, new_name) end
      pcall(merge, how, key, new_key)  -- of two keys of different types the old one stays where it is
    end
    if name ~= '' then call('ZREM', unsettled, name) end
    moved = moved + 1
  end
end
return moved
