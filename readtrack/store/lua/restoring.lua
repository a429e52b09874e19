-- Included in the scripts that give a Redis its read state back, behind `call`.
-- Takes: the keys of `reads:began` and `reads:restoring`, and a token.
-- Gives: is_restored_by, which returns true for the token of whoever restores a Redis that has not begun. A snapshot that
-- replaced this Redis meanwhile has another token or none, because it lacks what was restored before.
local function is_restored_by(began_key, restoring_key, token)
  return call('EXISTS', began_key) == 0 and call('GET', restoring_key) == token
end
