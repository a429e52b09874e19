"""A site of a million articles with 90 days of history, made by SQL as flushes would have left it."""

import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connection

from readtrack import buckets, tracker
from readtrack.numbers import hours_of_models
from readtrack.numbers.dimensions import BUILT_IN, SOURCES
from readtrack.store import keys
from readtrack.store.connection import connect
from tests.benchmarks import people

ARTICLES = int(os.environ.get("READTRACK_BENCHMARK_ARTICLES", "1000000"))
DAYS = 90
ACCOUNTS, AUTHORS, CATEGORIES = (
    1_000_000,
    200,
    500,
)  # accounts with a million articles; fewer with fewer
WORDS = "repeat('A text of some six thousand letters. ', 160)"
LABEL = "site.article"
VISITED = 40  # articles with days of visitors: those that a page may show
VALUES = 10  # values of each dimension that an article has on a day
DIMENSIONS = [*BUILT_IN][:3]
SETTINGS: Mapping[str, Any] = {"NUMBERS": {"dimensions": DIMENSIONS}, "TIMEOUT": 10.0}
# A few go viral, one in 250 is viewed every hour, one in 25 every day, and the others once.
GAIN = "(hour - {oldest}) * (1 + 100000 / (number + 100))"
VIEWED = """
    SELECT number FROM generate_series(1, {hourly}) number
    UNION ALL SELECT number FROM generate_series({hourly} + 1, {daily}) number WHERE number % 24 = hour % 24
    UNION ALL SELECT number FROM generate_series({daily} + 1, {articles}) number
        WHERE number % {hours} = hour % {hours}
"""
STATEMENTS = """
INSERT INTO auth_user (id, username, password, is_superuser, first_name, last_name, email, is_staff, is_active,
    date_joined)
SELECT number, 'user' || number, '', false, '', '', '', false, true, now() FROM generate_series(1, {accounts}) number;
INSERT INTO site_category (id, name) SELECT number, 'Category ' || number FROM generate_series(1, {categories}) number;
INSERT INTO site_article (id, title, text, is_published, published_at, author_id, category_id, view_count,
    visitor_count)
SELECT number, 'Article ' || number, {words}, true, now() - number % 1000 * interval '1 day',
    1 + number % {authors}, 1 + number % {categories},
    CASE WHEN number <= {daily} THEN {size} * (1 + 100000 / (number + 100)) ELSE 1 + number % {size} END,
    CASE WHEN number <= {daily} THEN {size} * (1 + 100000 / (number + 100)) / 2 ELSE 1 END
FROM generate_series(1, {articles}) number;
INSERT INTO readtrack_numbers_history (subject, hour, views, visitors)
SELECT 'site.article:' || number, hour, {gain}, {gain} / 2
FROM generate_series({oldest} + 1, {present}) hour, LATERAL ({viewed}) AS viewed;
INSERT INTO readtrack_numbers_history (subject, hour, views, visitors)
SELECT 'reads:site.article:' || number, hour, {gain} / 3, 0
FROM generate_series({oldest} + 1, {present}) hour, generate_series(1, {hourly}) number
WHERE number % 3 = hour % 3;
INSERT INTO readtrack_numbers_history (subject, hour, views, visitors)
SELECT name, hour, (hour - {oldest}) * weight, 0
FROM generate_series({oldest} + 1, {present}) hour, unnest(
    ARRAY['site.article', 'reads:site.article'], ARRAY[60000, 20000]
) AS named(name, weight);
INSERT INTO readtrack_numbers_readerhistory (subject, hour, readers)
SELECT 'site.category:' || number, {present} - 1, {accounts} / (number + 1)
FROM generate_series(1, {categories}) number;
INSERT INTO readtrack_numbers_breakdownhistory (subject, kind, hour, field, count)
SELECT 'site.article', kind, hour, name, 10
FROM generate_series({oldest} + 1, {present}) hour, (
    SELECT 'section:' || counted AS kind, 'site.category:' || number AS name
    FROM generate_series(1, {categories}) number, unnest(ARRAY['views', 'reads']) counted
    UNION ALL SELECT 'author:' || counted, number::text
    FROM generate_series(1, {authors}) number, unnest(ARRAY['views', 'reads']) counted
    UNION ALL SELECT 'age:' || counted, age
    FROM unnest(ARRAY['1', '7', '30', '90', 'older']) age, unnest(ARRAY['views', 'reads']) counted
    UNION ALL SELECT 'views:' || dimension, 'value ' || number
    FROM generate_series(1, {values}) number, unnest(ARRAY[{dimensions}]) dimension
) AS counted;
INSERT INTO readtrack_numbers_breakdownhistory (subject, kind, hour, field, count)
SELECT subject, kind || ':day', hour - hour % 24, field, sum(count) FROM readtrack_numbers_breakdownhistory
WHERE kind LIKE ANY (ARRAY['section:%', 'author:%', 'age:%']) GROUP BY 1, 2, 3, 4;
INSERT INTO readtrack_numbers_breakdownhistory (subject, kind, hour, field, count)
SELECT subject, replace(kind, ':day', ':month'),
    extract(epoch FROM date_trunc('month', to_timestamp(hour * 3600.0) AT TIME ZONE 'UTC')) / 3600, field, sum(count)
FROM readtrack_numbers_breakdownhistory WHERE kind LIKE '%:day' GROUP BY 1, 2, 3, 4;
INSERT INTO readtrack_numbers_daybreakdown (subject, kind, day, field, count)
SELECT 'site.article:' || number, 'views:' || dimension, current_date - age, 'value ' || value, 5
FROM generate_series(1, {with_values}) number, generate_series(0, {days} - 1) age,
    generate_series(1, {values}) value, unnest(ARRAY[{dimensions}]) dimension
"""
TABLES = "auth_user, site_category, site_article, readtrack_numbers_history, readtrack_numbers_popular, readtrack_numbers_readerhistory, readtrack_numbers_dayvisitors, readtrack_numbers_breakdownhistory, readtrack_numbers_daybreakdown, readtrack_numbers_usual"


def fill(articles: int = ARTICLES, *, days: int = DAYS, at: datetime) -> int:
    """Makes the rows, the lists and what Redis has. Returns the number of rows of history. Call
    `empty` before.
    """
    present = buckets.hour_index(at)
    size = days * 24
    words: dict[str, Any] = {
        "articles": articles,
        "hourly": articles // 250,
        "daily": articles // 25,
        "accounts": ACCOUNTS * articles // 1_000_000,
        "authors": AUTHORS,
        "categories": CATEGORIES,
        "oldest": present - size,
        "present": present,
        "size": size,
        "hours": size,
        "words": WORDS,
        "days": days,
        "values": VALUES,
        "with_values": min(articles // 250, 1_000),  # articles whose values are stored by the day
        "dimensions": ", ".join(f"'{name}'" for name in DIMENSIONS),
    }
    words |= {"gain": GAIN.format(**words), "viewed": VIEWED.format(**words)}
    with connection.cursor() as cursor:
        for statement in STATEMENTS.split(";\n"):
            cursor.execute(statement.format(**words))
        for table in TABLES.split(", "):
            cursor.execute(f"VACUUM ANALYZE {table}")
        cursor.execute("SELECT count(*) FROM readtrack_numbers_history")
        rows = int(cursor.fetchone()[0])
    _fill_redis(words, at=at)
    names = [LABEL, *(f"{LABEL}:{number}" for number in range(1, VISITED + 1))]
    people.fill(names, days=days + 64)
    return rows


def _fill_redis(words: dict[str, Any], *, at: datetime) -> None:
    """Gives Redis what it would have: totals, hours, breakdowns, minutes, hits that did not count,
    and readers.
    """
    present, size = words["present"], words["size"]
    pipeline: Any = connect(patient=True).pipeline(transaction=False)
    for number in range(1, words["daily"] + 1):
        subject, weight = f"{LABEL}:{number}", 1 + 100_000 // (number + 100)
        pipeline.set(keys.total(subject), size * weight + number % 3)
        for kind in (
            (*(f"views:{name}" for name in (*BUILT_IN, *SOURCES)), "funnel", "reading")
            if number <= words["hourly"]
            else ()
        ):
            fields = {
                "funnel": ("view", "click", "convert"),
                "reading": ("engaged", "reads", "5", "8", "12", "18", "27"),
            }
            names = fields.get(kind, [f"value {(number + place) % 60}" for place in range(20)])
            counts = {name: size * weight // (place + 2) for place, name in enumerate(names)}
            pipeline.hset(keys.prefix() + keys.member(kind, subject), mapping=counts)
        if number % 5_000 == 0:
            pipeline.execute()
    for minute in buckets.minute_buckets(60, until=at):
        members = {
            f"{LABEL}:{number}": 1 + 100 // number for number in range(1, words["hourly"] + 1)
        }
        pipeline.zadd(keys.trending_bucket("", minute), members)
    for hour in range(present - 47, present + 1):
        start = buckets.bucket_of_hour(hour)
        pipeline.set(keys.prefix() + hours_of_models.hour_name(LABEL, hour), 60_000)
        pipeline.hset(keys.skips("", start), mapping={"bot": 5_000, "repeat": 300, "rate": 20})
    pipeline.execute()
    for number in range(1, words["categories"] + 1):
        bits = b"\xff" * (words["accounts"] // 8 // (number + 1))
        pipeline.set(keys.read_bits(f"site.category:{number}"), bits)
    pipeline.set(keys.reads_began(""), 1)  # or else a page asks SQL whether read state was lost
    pipeline.execute()
    tracker.refresh_trending()


def empty() -> None:
    """Takes all of it away."""
    connect(patient=True).flushdb()
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {TABLES} CASCADE")
