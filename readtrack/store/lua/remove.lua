-- Removes subjects with everything that they have; idle ones only if SQL keeps just what they hold.
-- Guarantees: with "idle", a total that changed since it was stored, or waits for its base, stays whole.
-- KEYS: unsettled, orphans; per subject: total, sketch, hashes[, others]
-- ARGV: keys per subject, hashes per subject, "idle" or "any"; per subject: id, names of its hashes in `unsettled`, views, sum of each hash
-- Returns: number of subjects removed
local call = redis.call
local width, hashes, is_idle = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == 'idle'
local removed = 0

local function is_kept_elsewhere(key, arg)
  if call('GET', KEYS[key]) ~= ARGV[arg + hashes + 1] then return false end
  for index = 0, hashes do
    if call('ZSCORE', KEYS[1], ARGV[arg + index]) then return false end
  end
  for index = 1, hashes do
    local sum = 0
    for _, count in ipairs(call('HVALS', KEYS[key + 1 + index])) do sum = sum + count end
    if sum ~= tonumber(ARGV[arg + hashes + 1 + index]) then return false end
  end
  return true
end

local arg = 4
for key = 3, #KEYS, width do
  if not is_idle or is_kept_elsewhere(key, arg) then
    for index = 0, width - 1 do call('UNLINK', KEYS[key + index]) end
    for index = 0, hashes do call('ZREM', KEYS[1], ARGV[arg + index]) end
    call('ZREM', KEYS[2], ARGV[arg])
    removed = removed + 1
  end
  arg = arg + 2 * hashes + 2
end
return removed
