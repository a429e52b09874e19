-- Both counts only rise, so a row that another flush raises meanwhile keeps the higher number.
UPDATE {table}
SET
    {views} = CASE WHEN {views} < %s THEN %s ELSE {views} END,
    {visitors} = CASE WHEN {visitors} < %s THEN %s ELSE {visitors} END
WHERE {pk} = %s
