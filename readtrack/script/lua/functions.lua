-- Counts a view whose page was seen. Joined into the scripts that count views, and included in reading.lua.
-- Takes call, view_weight, bucket_life, mark_unsettled, mark_changed.
-- Gives: count_seen.

-- Returns true if the total can be compared with the counts of the hash: not while only the total lacks what SQL stores.
-- Where the list of unsettled counters is of another type, `pcall` returns an error, which is true.
local function is_complete(unsettled, subject, name, hash)
  if not redis.pcall('ZSCORE', unsettled, subject) then return true end
  return call('EXISTS', hash) == 0 or redis.pcall('ZSCORE', unsettled, name)
end

-- Returns the highest number that the first stage of a view may have.
local function most_seen(unsettled, total, subject, name, hash)
  local views = tonumber(redis.pcall('GET', total)) or 0
  return is_complete(unsettled, subject, name, hash) and views or math.huge
end

-- Counts once what the window holds, and marks it in the window. Never counts more than views: a window may be older
-- than a reset, which does not find it.
local function count_seen(window, hash, total, unsettled, name, bucket, changed, subject)
  local most = most_seen(unsettled, total, subject, name, hash)
  local seen = tonumber(redis.pcall('HGET', hash, 'seen')) or 0
  if seen >= most then return end
  call('SET', window, 's', 'KEEPTTL')
  if redis.pcall('HINCRBY', hash, 'seen', 1) == 1 and call('HLEN', hash) == 1 then mark_unsettled(unsettled, name) end
  mark_changed(changed, subject)
  if tonumber(view_weight) == 1 then return end
  redis.pcall('ZINCRBY', bucket, 1, subject)
  if call('TTL', bucket) < 0 then call('EXPIRE', bucket, bucket_life) end
end
