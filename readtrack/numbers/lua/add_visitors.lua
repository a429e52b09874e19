-- Returns a sketch with further visitors, and stores nothing.
-- Guarantees: bytes that are no sketch are taken for an empty one. It works while Redis's memory is full.
-- KEYS: a scratch key. ARGV: the sketch, '' for none; visitors
-- Returns: the number of different visitors; the sketch with all of them
local call, key, sketch = redis.call, KEYS[1], ARGV[1]
local AT_ONCE = 1000  -- visitors; Lua can unpack some 8,000 values
-- The scratch key is gone at the end, so neither replicas nor the append-only file need it.
if redis.replicate_commands then redis.replicate_commands() end
redis.set_repl(redis.REPL_NONE)
call('UNLINK', key)  -- there is none; but a full Redis lets a script go on that has written
if sketch ~= '' then
  call('SET', key, sketch)
  if type(redis.pcall('PFCOUNT', key)) ~= 'number' then call('UNLINK', key) end
end
for first = 2, #ARGV, AT_ONCE do
  call('PFADD', key, unpack(ARGV, first, math.min(first + AT_ONCE - 1, #ARGV)))
end
local number = call('PFCOUNT', key)
local all = call('GET', key)
call('UNLINK', key)
return {number, all}
