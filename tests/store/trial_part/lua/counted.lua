-- Takes keys: of_model, of_subject or total; weight.
call('HINCRBY', of_model, visitor, weight)
if of_subject ~= total then call('HINCRBY', of_subject, visitor, weight) end
