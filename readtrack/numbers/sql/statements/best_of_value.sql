-- The subjects that had one value most often on some days. The derived table is for MySQL, which takes no LIMIT in a
-- subquery of IN. The weights are decimals, because MySQL's products of an unsigned count and a whole number are
-- unsigned.
-- Parameters: kind and field; then those of the condition.
SELECT subject FROM (
    SELECT subject FROM {table}
    WHERE kind = %s AND {field} = %s AND ({days}) AND ({condition})
    GROUP BY subject
    ORDER BY SUM({count} * {weight}) DESC, subject
    LIMIT {limit}
) AS best
