-- Views of subjects in a range of hours, by slot. Parameters: those of the condition.
SELECT
    {subject} AS subject,
    {slot} AS slot,
    -- A count that fell was reset in between. Unsigned columns bear no difference below zero.
    SUM(CASE WHEN views < old_views THEN views ELSE views - old_views END) AS views
FROM (
    SELECT
        subject,
        hour,
        views,
        COALESCE(LAG(views) OVER hours, (
            SELECT past.views FROM {table} past
            WHERE past.subject = this.subject AND past.hour < {since} ORDER BY past.hour DESC LIMIT 1
        ), 0) AS old_views
    FROM (
        SELECT subject, hour, views FROM {table} WHERE hour >= {since} AND hour < {until} AND {condition}
    ) AS this
    WINDOW hours AS (PARTITION BY subject ORDER BY hour)
) AS steps
GROUP BY 1, 2
