-- Claims a job for one process. The same claim may be sent twice, as after a broken connection.
-- Guarantees: it works while Redis's memory is full, because it begins with commands that take none. A claim with more
-- than the interval left is made anew: it is from before the server's clock was set back.
-- KEYS: job. ARGV: random value of this claim, interval (ms), lifetime of the claim (ms). Returns: 1 if the job is this
--       claim's, else 0
local call = redis.call
local left = call('PTTL', KEYS[1])
if left > 0 and left <= tonumber(ARGV[2]) then
  return call('GET', KEYS[1]) == ARGV[1] and 1 or 0
end

call('DEL', KEYS[1])
call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1
