-- Reads the epoch of this Redis. KEYS: unsettled. Returns: "epoch origin current previous until", or nil for none
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
return last[2] == 'inf' and last[1]
