-- The days of one value in some periods, of the subjects that had it most often in them. The derived table is for MySQL,
-- which takes no LIMIT in a subquery of IN. The weights are decimals, because MySQL's products of an unsigned count and
-- a whole number are unsigned.
-- Parameters: kind, field, the periods' first and last days; once more, then those of the condition, then the day from
-- which a view counts 1, and an earlier one `weight_before`.
SELECT subject, day, {count} FROM {table}
WHERE kind = %s AND field = %s AND ({in_periods}) AND subject IN (
    SELECT subject FROM (
        SELECT subject FROM {table}
        WHERE kind = %s AND field = %s AND ({in_periods}) AND {condition}
        GROUP BY subject
        ORDER BY SUM({count} * CASE WHEN day >= %s THEN 1.0 ELSE {weight_before} END) DESC, subject
        LIMIT {limit}
    ) AS best
)
