-- Brings the trending list of the last hour up to date, from one bucket for each minute.
-- Guarantees: the list is always the sum of what it took in and has not given up. What it takes in goes from the bucket of
-- the minute to what was taken of that minute, and when the minute is over for an hour, it gives that up. So a late view
-- cannot make it drift, and each view of a minute is kept once. All numbers are whole.
-- The list's member '' holds the last minute taken in (as a negative score), so without a list there is no state.
-- A key of another type, which somebody else has written, is as a missing one.
-- The running minute is taken in as it is, and what it gained since by the next call.
-- KEYS: list; bucket of each minute of the window, oldest first; what was taken of each minute, from `gap` before the window on
-- ARGV: number of the running minute, minutes of the window, gap, lifetimes of the list and of what was taken (s),
--       1 to leave a list as it is, because of many callers that miss it one alone has to compute it
-- Returns: number of subjects on the list
local call = redis.call
local list = KEYS[1]
local minute, window, gap = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local life, life_of_taken = ARGV[4], ARGV[5]

local function bucket(number) return KEYS[1 + window - (minute - number)] end
local function taken(number) return KEYS[1 + window + gap + window - (minute - number)] end

-- Returns the number of members of a sorted set; 0 for a missing one.
local function size(key)
  local members = redis.pcall('ZCARD', key)
  return type(members) == 'number' and members or 0
end

local mark = size(list) > 0 and call('ZSCORE', list, '')
if mark and ARGV[6] == '1' then return 0 end
local last = mark and -tonumber(mark)
local sources, weights = {}, {}
local function sum(key, weight)
  if size(key) == 0 then return end
  sources[#sources + 1], weights[#weights + 1] = key, weight
end

local first = minute - window + 1
local first_new = first -- the first minute of which the list has nothing
-- After a clock that was set back, or too long a gap, the list begins anew.
if last and last <= minute and minute - last <= gap then
  sum(list, 1)
  for number = last + 1 - window, minute - window do sum(taken(number), -1) end
  first, first_new = math.max(last, first), math.max(last + 1, first)
end
for number = first_new, minute do sum(taken(number), 1) end
for number = first, minute do sum(bucket(number), 1) end

if #sources == 0 then
  call('DEL', list)
else
  local arguments = {list, #sources}
  for _, key in ipairs(sources) do arguments[#arguments + 1] = key end
  arguments[#arguments + 1] = 'WEIGHTS'
  for _, weight in ipairs(weights) do arguments[#arguments + 1] = weight end
  call('ZUNIONSTORE', unpack(arguments))
end
for number = first, minute do
  local from, to = bucket(number), taken(number)
  if size(from) > 0 then
    if size(to) == 0 then
      call('RENAME', from, to)
    else
      call('ZUNIONSTORE', to, 2, to, from)
      call('UNLINK', from)
    end
    call('EXPIRE', to, life_of_taken)
  end
end
call('ZREMRANGEBYSCORE', list, '-inf', 0)
call('ZADD', list, -minute, '')
call('EXPIRE', list, life)
return call('ZCARD', list) - 1
