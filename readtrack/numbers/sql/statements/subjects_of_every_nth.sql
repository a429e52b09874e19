-- The subject of every nth row of a range of hours. Parameters: those of the condition.
SELECT subject
FROM (
    SELECT subject, ROW_NUMBER() OVER (ORDER BY subject) AS place
    FROM {table} WHERE hour >= {since} AND hour < {until} AND {condition}
) AS numbered
WHERE place %% {nth} = 0
ORDER BY place
