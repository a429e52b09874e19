-- Adds visitors to sketches or sets. Idempotent.
-- KEYS: for each visitor the sketch or set. ARGV: for each visitor the command, the visitor
-- Returns: number of visitors
for index, key in ipairs(KEYS) do redis.call(ARGV[2 * index - 1], key, ARGV[2 * index]) end
return #KEYS
