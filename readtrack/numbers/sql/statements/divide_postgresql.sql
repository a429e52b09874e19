-- Makes the table of history the first partition of a new one. The database knows the bounds of its rows already.
-- Others queue behind whoever waits to change a table.
SET LOCAL lock_timeout = '5s';
ALTER TABLE {table} RENAME TO {first};
CREATE TABLE {table} (LIKE {first}) PARTITION BY RANGE (hour);
ALTER TABLE {table} ADD PRIMARY KEY (subject, hour);
ALTER TABLE {table} ATTACH PARTITION {first} FOR VALUES FROM (MINVALUE) TO ({until});
CREATE INDEX ON {table} USING brin (hour);
ALTER TABLE {first} DROP CONSTRAINT {bound}
