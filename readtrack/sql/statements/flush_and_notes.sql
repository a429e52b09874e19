-- The last flush that ended, beside each note of a range of days; at least one row, whose flush or note may be NULL.
SELECT last.*, note.day AS note_day, note.text AS note_text
FROM (SELECT 1 AS number) AS single
LEFT JOIN (SELECT * FROM {runs} WHERE ended IS NOT NULL ORDER BY started DESC LIMIT 1) AS last ON 1 = 1
LEFT JOIN {notes} note ON note.day BETWEEN %s AND %s
ORDER BY note.day, note.id
