-- Included at the end of unread_bitmap.lua and unread_sequence.lua.
-- Takes: call; count_new(state, reader), which returns what is new to a reader's number, or to a reader without one (nil).
-- Counts what is new to one reader in many categories.
-- Guarantees: while the read state of this Redis is not restored, nothing is counted.
-- KEYS: when this Redis began to know publications; state of each category; for a reader given by
--       name: the hashes that may have its number
-- ARGV: reader, number of categories, most readers in these hashes ('' for any number)
-- Returns: the number for each category; at least 1 if the reader has never opened it;
--          0 for a reader who can get no number, and so could never put the dot out. Nothing if this Redis has not begun.
local began_key = KEYS[1]
local reader, categories, most_readers = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local first_hash = categories + 2

-- Returns the number of the reader with that name; nil for a reader without one, who has read nothing.
local function find_number(name)
  for key = first_hash, #KEYS do
    local number = call('HGET', KEYS[key], name)
    if number then return number end
  end
end

local function is_full()
  if not most_readers then return false end
  local given = 0
  for key = first_hash, #KEYS do given = given + call('HLEN', KEYS[key]) end
  return given >= most_readers
end

if call('EXISTS', began_key) == 0 then return false end

local can_read = true
if #KEYS >= first_hash then
  reader = find_number(reader)
  can_read = reader or not is_full()
end

local counts = {}
for category = 1, categories do
  if can_read then
    counts[category] = count_new(KEYS[category + 1], reader)
  else
    counts[category] = 0
  end
end
return counts
