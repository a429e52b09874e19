-- Both counts only rise, so a row that another flush raises meanwhile keeps the higher number.
UPDATE {table}
SET
    {views} = CASE WHEN {views} < %(views)s THEN %(views)s ELSE {views} END,
    {visitors} = CASE WHEN {visitors} < %(visitors)s THEN %(visitors)s ELSE {visitors} END
WHERE {pk} = %(pk)s
