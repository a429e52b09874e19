-- The last flush that ended, and until when the last good full one has read, beside each note of a range of days; at
-- least one row, whose flush or note may be NULL. Of the parts of a full flush the first adds up what is of whole models.
SELECT
    last.*,
    note.day AS note_day,
    note.text AS note_text,
    (
        SELECT MAX(flushed_until) FROM {runs}
        WHERE ended IS NOT NULL AND error = '' AND kind <> 'changed' AND (part = '' OR part LIKE '1/%%')
    ) AS full_until
FROM (SELECT 1 AS number) AS single
LEFT JOIN (SELECT * FROM {runs} WHERE ended IS NOT NULL ORDER BY started DESC LIMIT 1) AS last ON 1 = 1
LEFT JOIN {notes} note ON note.day BETWEEN %s AND %s
ORDER BY note.day, note.id
