-- The last flush that ended, beside each note of a range of days; without a flush no row.
SELECT last.*, note.day AS note_day, note.text AS note_text
FROM (SELECT * FROM {runs} WHERE ended IS NOT NULL ORDER BY started DESC LIMIT 1) AS last
LEFT JOIN {notes} note ON note.day BETWEEN %s AND %s
ORDER BY note.day, note.id
