-- Takes away the numbers of readers who share them. With their next visit they get others, under which nothing is read.
-- Guarantees: a number that is taken away is given to nobody else. A reader who has another one by now keeps it.
-- KEYS: readers, readers that SQL does not know yet. ARGV: per reader: name, number. Returns: number of readers
local call = redis.call
local readers, new_readers = KEYS[1], KEYS[2]
local retired = 0
for index = 1, #ARGV, 2 do
  local name, number = ARGV[index], ARGV[index + 1]
  if call('HGET', readers, name) == number then
    call('HDEL', readers, name)
    -- Another field takes the reader's place, because the next number is not below the number of fields.
    call('HSET', readers, '!' .. number, number)
    retired = retired + 1
  end
  if call('ZSCORE', new_readers, name) == number then call('ZREM', new_readers, name) end
end
return retired
