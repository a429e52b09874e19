-- Included where a script changes what a flush stores. Takes call, and bucket_life (s).
-- Gives: mark_changed.

-- Enters a subject into the list of what changed. A flush takes the list away. While none comes, it lives no longer than a
-- minute's bucket: the first flush after such a pause looks at everything. A key of another type takes no subject.
local function mark_changed(changed, subject)
  if redis.pcall('ZADD', changed, 1, subject) == 1 and call('ZCARD', changed) == 1 then call('EXPIRE', changed, bucket_life) end
end
