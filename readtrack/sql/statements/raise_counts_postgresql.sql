-- Raises rows that store less, and finds what all of them stored before. Parameters: primary keys, views, visitors,
-- primary keys, primary keys.
WITH new AS (
    SELECT row.{pk} AS pk, new.views, new.visitors
    FROM {table} AS row
    JOIN unnest(%s::{pk_type}[], %s::bigint[], %s::bigint[]) AS new(pk, views, visitors)
        -- The condition on the key stands twice, because PostgreSQL would otherwise read all of a large table.
        ON row.{pk} = new.pk AND row.{pk} = ANY(%s::{pk_type}[])
    WHERE row.{views} < new.views OR row.{visitors} < new.visitors
    -- An UPDATE alone would wait for a row that is locked elsewhere, and hold the locks of all others meanwhile.
    FOR NO KEY UPDATE OF row SKIP LOCKED
), raised AS (
    UPDATE {table} AS row
    SET {views} = GREATEST(row.{views}, new.views), {visitors} = GREATEST(row.{visitors}, new.visitors)
    FROM new
    WHERE row.{pk} = new.pk
    RETURNING row.{pk} AS pk
)
SELECT row.{pk}, raised.pk IS NOT NULL, row.{views}, row.{visitors}
FROM {table} AS row LEFT JOIN raised ON raised.pk = row.{pk}
WHERE row.{pk} = ANY(%s::{pk_type}[])
