-- Reads Redis's clock. KEYS, ARGV: none. Returns: seconds since 1970, microseconds of the present second
return redis.call('TIME')
