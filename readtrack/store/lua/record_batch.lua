-- Records the views of many hits, in their order.
-- Guarantees: those of view.lua, for each hit. Sent again, it counts none of them twice.
-- KEYS and ARGV: what all hits have in common, as in common.lua; then runs of hits, each after an argument that says
--   what they are:
--   "alike N …": N hits of one view without options, and their shape as in record.lua. KEYS of all: unsettled, trending
--     bucket, model's hour, model's visitors of the minute; of each: rate, total, hour, hll, window[, other window]. No
--     ARGV.
--   "same N …": the same, with the KEYS of all that the run before has
--   "other N": N hits with the KEYS of record.lua and its ARGV from the second
-- Returns: per hit what record.lua returns; of those alike a number
-- common.lua
local function record(KEYS, ARGV)
-- record.lua
end

local outcomes, key, position, slices = {}, 0, 2, 0
local unsettled, bucket, model_hour, minute_visitors
while position <= #ARGV do
  local kind, many, numbers = string.match(ARGV[position], '(%a+) (%d+) ?(.*)')
  position = position + 1
  if kind ~= 'other' then
    local counted_hits, prefix, newcomers, script, width, subject_at, visitor_at =
      string.match(numbers, string.rep('(%d+) ', 5) .. '%d+ %d+ %d+ (%d+) (%d+)')
    prefix, newcomers, script = tonumber(prefix), tonumber(newcomers), tonumber(script)
    width = tonumber(width) - 1
    if kind == 'alike' then
      unsettled, bucket, model_hour, minute_visitors = unpack(KEYS, key + 1, key + 4)
      key = key + 4
    end
    for _ = 1, many do
      local rate, total, hour, hll, own = unpack(KEYS, key + 1, key + 5)
      local other, hits = width > 5 and KEYS[key + 6], nil
      local subject = string.sub(total, subject_at)
      local visitor = string.sub(own, visitor_at, -#subject - 2)
-- view.lua
      if script > 0 and newcomers == 0 and outcome ~= COUNTED and rate ~= unsettled then call('DECR', rate) end
      outcomes[#outcomes + 1] = outcome
      key = key + width
    end
  else
    for _ = 1, many do
      local keys, args = {}, {ARGV[1], ARGV[position]}
      local width, length = string.match(ARGV[position], '(%d+) (%d+) %d+ %d+$')
      for index = 1, width do keys[index] = KEYS[key + index] end
      for index = 1, length do args[2 + index] = ARGV[position + index] end
      outcomes[#outcomes + 1] = record(keys, args)
      key, position = key + width, position + 1 + length
    end
  end
end
return outcomes
