-- Unites sketches from SQL or from several partitions, and sketches of the partition's own keys.
-- Guarantees: keys that are no scratch keys stay as they are; bytes that are no sketch are passed over. It works while
--   Redis's memory is full.
-- KEYS: a scratch key for the union, and one for each sketch; then keys with sketches, which may be missing
-- ARGV: 1 to return the union, too; sketches
-- Returns: the number of different visitors; the union, or ''
local call, union = redis.call, KEYS[1]
local wants_union = ARGV[1] == '1'
local MANY = 1500  -- visitors; Redis makes a sketch of more dense
-- The scratch keys are gone at the end, so neither replicas nor the append-only file need them.
if redis.replicate_commands then redis.replicate_commands() end
redis.set_repl(redis.REPL_NONE)
call('UNLINK', unpack(KEYS, 1, #ARGV))  -- there are none; but a full Redis lets a script go on that has written
for index = 2, #ARGV do call('SET', KEYS[index], ARGV[index]) end
-- One command reads each sketch once. It refuses all if one is none.
local number = redis.pcall('PFCOUNT', unpack(KEYS))
local are_sketches = type(number) == 'number'
local sketch = ''
if wants_union or not are_sketches then
  -- A sketch that is not dense is moved for each visitor that it takes in, and would become dense at last.
  if are_sketches and number > MANY then
    call('SET', union, 'HYLL' .. string.rep('\0', 12 + 12288))  -- a dense one that is empty
  end
  redis.pcall('PFMERGE', unpack(KEYS))
  if not are_sketches then
    for index = 2, #KEYS do redis.pcall('PFMERGE', union, KEYS[index]) end
  end
  number = call('PFCOUNT', union)
  if wants_union then sketch = call('GET', union) or '' end
end
call('UNLINK', unpack(KEYS, 1, #ARGV))
return {number, sketch}
