-- Unites the visitors that objects of one model had on a day with those that SQL has of these objects.
-- Guarantees: keys that are no scratch keys stay as they are, except that a sketch without a lifetime gets one; bytes that are no sketch are passed over. It works while
--   Redis's memory is full.
-- KEYS: two scratch keys; the sketch of each object, which may be missing
-- ARGV: lifetime of a sketch (s); the sketch that SQL has of each object, or ''; that of the model, or ''
-- Returns: the number of visitors of each object, 0 where Redis has none, and of the model; the sketch of each, or '' where
--   SQL has the same
local call, united, all = redis.call, KEYS[1], KEYS[2]
local life = table.remove(ARGV, 1)  -- so the others have the numbers of their objects
local MANY = 1500  -- visitors; Redis makes a sketch of more dense
-- The scratch keys are gone at the end, so neither replicas nor the append-only file need them.
if redis.replicate_commands then redis.replicate_commands() end
redis.set_repl(redis.REPL_NONE)
call('UNLINK', united, all)  -- there are none; but a full Redis lets a script go on that has written

local function number_of(key)
  local number = redis.pcall('PFCOUNT', key)
  return type(number) == 'number' and number or 0
end

local numbers, sketches, live, sum = {}, {}, {}, 0
for index = 1, #ARGV - 1 do
  local key, stored = KEYS[index + 2], ARGV[index]
  local number, sketch = number_of(key), ''
  if number > 0 then
    sketch = call('GET', key)
    live[#live + 1], sum = key, sum + number
    -- The first view of an hour sets it (see counted.lua). A sketch may begin later in an hour: where an import made the
    -- hour, or a reset took the sketch.
    if call('TTL', key) == -1 then
      redis.set_repl(redis.REPL_ALL)
      call('EXPIRE', key, life)
      redis.set_repl(redis.REPL_NONE)
    end
    if sketch == stored then
      sketch = ''
    elseif stored ~= '' then
      call('SET', united, stored)
      if number_of(united) > 0 then
        call('PFMERGE', united, key)
        number, sketch = call('PFCOUNT', united), call('GET', united)
      end
    end
  end
  numbers[index], sketches[index] = number, sketch
end

local number, sketch = 0, ''
if sum > 0 then
  call('SET', united, ARGV[#ARGV])
  if number_of(united) > 0 then live[#live + 1] = united end
  -- A sketch that is not dense is moved for each visitor that it takes in, and would become dense at last.
  if sum > MANY then call('SET', all, 'HYLL' .. string.rep('\0', 12 + 12288)) end  -- a dense one that is empty
  call('PFMERGE', all, unpack(live))
  number, sketch = call('PFCOUNT', all), call('GET', all)
  if sketch == ARGV[#ARGV] then sketch = '' end
end
numbers[#ARGV], sketches[#ARGV] = number, sketch
call('UNLINK', united, all)
return {numbers, sketches}
