-- Takes weight.
function effects.trial(key, number) call('INCRBY', KEYS[key], number * weight) end
