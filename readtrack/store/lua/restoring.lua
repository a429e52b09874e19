-- Included in the scripts that give a Redis its read state back, behind `call`.
-- Takes: the keys of `reads:began` and `reads:restoring`, and the id of a restoration.
-- Gives: is_restored_by, which returns true for the restoration of a Redis that has not begun. A snapshot that
-- replaced this Redis meanwhile has another restoration or none, because it lacks what was restored before.
local function is_restored_by(began_key, restoring_key, restoration_id)
  return call('EXISTS', began_key) == 0 and call('GET', restoring_key) == restoration_id
end
