-- How many rows of history each hour has from one on, and their sums. Parameters: those of the condition.
SELECT {number}, hour, COUNT(*), SUM(views), SUM(visitors) FROM {table} WHERE hour >= {since} AND {condition} GROUP BY hour
