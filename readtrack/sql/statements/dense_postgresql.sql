-- The subjects with rows in most hours, which have most of all rows. They are looked for among the foremost names of
-- steps_postgresql.sql.
SELECT subject FROM {table}
WHERE hour >= {until} - 48 AND hour < {until} AND subject = ANY(ARRAY(SELECT subject FROM foremost))
GROUP BY 1 HAVING COUNT(*) > {dense}
INTERSECT
SELECT subject FROM {table}
WHERE hour >= {earlier} AND hour < {earlier} + 48 AND subject = ANY(ARRAY(SELECT subject FROM foremost))
GROUP BY 1 HAVING COUNT(*) > {dense}
