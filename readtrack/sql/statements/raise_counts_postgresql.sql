-- Raises rows that store less. Answers with the keys of the raised rows, NULL for all of them, and of those among them
-- that have more views: in arrays, because thousands of rows take longer to fetch than to raise.
-- Parameters: primary keys, views, visitors, primary keys, number of rows.
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
    RETURNING row.{pk} AS pk, row.{views} > new.views AS is_ahead
)
SELECT
    CASE WHEN count(*) < %s THEN coalesce(array_agg(pk), '{{}}') END,
    array_agg(pk) FILTER (WHERE is_ahead)
FROM raised
