-- Absolute counts by the hour become gains by the day. Hour 0 holds what a subject had before.
-- A count that fell was reset in between. MySQL's unsigned columns bear no difference below zero.
{create} {view} AS
SELECT
  SUBSTR(daily.subject, 1, {position}(daily.subject, ':') - 1) AS model,
  SUBSTR(daily.subject, {position}(daily.subject, ':') + 1) AS primary_key,
  daily.day,
  daily.views,
  CAST(COALESCE(people.visitors, 0) AS {integer}) AS visitors,
  daily.first_visits,
  {stages}
FROM (
SELECT
  subject,
  day,
  CAST(SUM(CASE WHEN stage = '' THEN views ELSE 0 END) AS {integer}) AS views,
  CAST(SUM(CASE WHEN stage = '' THEN visitors ELSE 0 END) AS {integer}) AS first_visits,
  {sums_of_stages}
FROM (
  SELECT
    {stage} AS stage,
    {subject} AS subject,
    {day} AS day,
    CASE WHEN views < COALESCE(old_views, 0) THEN views ELSE views - COALESCE(old_views, 0) END AS views,
    CASE
      WHEN views < COALESCE(old_views, 0) THEN visitors
      WHEN visitors < COALESCE(old_visitors, 0) THEN 0
      ELSE visitors - COALESCE(old_visitors, 0)
    END AS visitors
  FROM (
    SELECT
      subject, hour, views, visitors,
      LAG(views) OVER (PARTITION BY subject ORDER BY hour) AS old_views,
      LAG(visitors) OVER (PARTITION BY subject ORDER BY hour) AS old_visitors
    FROM {table}
    -- Without the rows of whole models, as of a partition `blog.post:{{rt00}}`.
    WHERE subject LIKE '%:%' AND subject NOT LIKE '%:{{rt%'
  ) AS hours
  WHERE hour > 0
) AS gains
WHERE subject LIKE '%:%'
GROUP BY subject, day
) AS daily
LEFT JOIN {people} people ON people.subject = daily.subject AND people.day = daily.day AND people.length = 1
