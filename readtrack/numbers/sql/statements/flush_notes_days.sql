-- The last flush that ended, and until when the last good full one has read; each note of a range of days; some days of
-- visitors; what is usual; and the first hours of history. Only the row of the flush has the columns
-- of a flush, and these are NULL if there was none. Of the shares of a
-- full flush the first adds up what is of whole models.
SELECT
    last.*,
    item.item_kind,
    item.item_day,
    item.item_name,
    item.item_number,
    item.item_sketch,
    item.item_length,
    (
        SELECT MAX(flushed_until) FROM {runs}
        WHERE item.item_kind = 1 AND ended IS NOT NULL AND error = '' AND kind <> 'changed'
        AND (share = '' OR share LIKE '1/%%')
    ) AS full_until
FROM (
    -- The days come first, because PostgreSQL takes the types of the columns from them.
    {days}
    {usual}
    {first_hours}
    UNION ALL
    SELECT 2, day, text, id, NULL, NULL FROM {notes} WHERE day BETWEEN %s AND %s
    UNION ALL
    SELECT 1, NULL, NULL, NULL, NULL, NULL
) AS item
LEFT JOIN (SELECT * FROM {runs} WHERE ended IS NOT NULL ORDER BY started DESC LIMIT 1) AS last ON item.item_kind = 1
