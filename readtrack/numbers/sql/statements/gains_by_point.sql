-- What subjects gained by one value in each point, which is some days.
-- Parameters: kind and field; then those of the condition.
SELECT subject, {point} AS point_number, SUM({count}) FROM {table}
WHERE kind = %s AND {field} = %s AND ({days}) AND {condition}
GROUP BY subject, point_number
