-- Marks categories read for every reader up to a number.
-- Guarantees: a category that was published to since `as_of` stays as it is.
-- KEYS: per category: state, published
-- ARGV: 'bitmap' or 'sequence', highest number of a reader, as_of (µs)
-- Returns: number of categories marked
local call = redis.call
local is_sequence, readers, as_of = ARGV[1] == 'sequence', tonumber(ARGV[2]) + 1, tonumber(ARGV[3])
local bytes = string.rep('\255', math.floor(readers / 8))
local marked = 0
for key = 1, #KEYS, 2 do
  local state, published = KEYS[key], tonumber(call('GET', KEYS[key + 1]) or 0)
  if published < as_of then
    if is_sequence then
      local seen = call('BITFIELD', state, 'GET', 'u32', 0)[1] + 1
      call('SETRANGE', state, 4, string.rep(struct.pack('>I4', seen), readers))
    else
      call('SETRANGE', state, 0, bytes)
      for reader = #bytes * 8, readers - 1 do call('SETBIT', state, reader, 1) end
    end
    marked = marked + 1
  end
end
return marked
