"""`manage.py readtrack show`."""

import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.hits.stages import READS
from readtrack.store import keys
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


def show(subject: str) -> str:
    out = StringIO()
    call_command("readtrack", "show", subject, stdout=out)
    return out.getvalue()


def table(text: str) -> list[list[str]]:
    """Returns the name, the number and the source of each line of the table."""
    rows = [line for line in text.splitlines() if line.startswith("  ")]
    return [re.split(r"  +", row.strip(), maxsplit=2) for row in rows]


@pytest.fixture
def viewed_post(redis: Redis) -> Post:
    """Returns a post with three views and two reads, of which SQL stores two views and one read."""

    from readtrack.script import keys as script_keys

    post = factories.post(title="Tea\nand milk")
    subject = subject_of(post)
    reading = script_keys.reading(subject)
    tracker.record(factories.hit(subject))
    tracker.record(factories.hit(subject))
    redis.hincrby(reading, READS, 1)
    flush()
    tracker.record(factories.hit(subject))
    redis.hincrby(reading, READS, 1)
    return post


def test_the_counts_of_an_object_say_where_they_come_from(viewed_post: Post) -> None:
    text = show(f"site.post:{viewed_post.pk}")
    assert text.splitlines()[0] == f"site.post:{viewed_post.pk} Tea and milk"
    assert table(text) == [
        ["views", "3", "Redis"],
        ["stored", "2", "SQL"],
        ["unflushed", "1", "the difference"],
        ["visitors", "3", "Redis (strategy hll)"],
        ["stored", "2", "SQL"],
        ["views, last 24 hours", "3", "SQL and Redis"],
        ["seen", "2", "Redis"],
        ["stored", "0", "SQL"],
        ["engaged", "2", "Redis"],
        ["stored", "0", "SQL"],
        ["reads", "2", "Redis"],
        ["stored", "1", "SQL"],
    ]


def test_while_redis_is_down_sqls_numbers_are_shown_and_it_says_so(
    viewed_post: Post, wire: Wire
) -> None:
    wire.cut()
    text = show(f"site.post:{viewed_post.pk}")
    assert "Redis is down, so these are the numbers that SQL stores." in text
    assert table(text) == [
        ["views", "2", "SQL"],
        ["stored", "2", "SQL"],
        ["unflushed", "0", "the difference"],
        ["visitors", "2", "SQL (strategy hll)"],
        ["stored", "2", "SQL"],
        ["views, last 24 hours", "2", "SQL"],
        ["seen", "1", "SQL"],
        ["stored", "0", "SQL"],
        ["engaged", "1", "SQL"],
        ["stored", "0", "SQL"],
        ["reads", "1", "SQL"],
        ["stored", "1", "SQL"],
    ]


def test_a_cache_that_is_no_redis_is_said_beside_sqls_numbers(
    viewed_post: Post, settings: Settings
) -> None:
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": "127.0.0.1:6379"}}
    text = show(f"site.post:{viewed_post.pk}")
    assert "Redis is down" in text
    assert ["views", "2", "SQL"] in table(text)


def test_a_total_that_redis_lost_is_said(viewed_post: Post, redis: Redis) -> None:
    subject = subject_of(viewed_post)
    redis.delete(keys.total(subject))
    assert table(show(subject))[0] == ["views", "2", "SQL, because Redis has no total"]
    tracker.record(factories.hit(subject))
    views = table(show(subject))[0]
    assert views[:2] == ["views", "3"]
    assert "began anew" in views[2]


@pytest.mark.needs_parts("numbers")
def test_a_category_shows_its_readers_and_its_last_publication(wire: Wire) -> None:
    category = factories.category()
    subject = subject_of(category)
    assert table(show(subject)) == [
        ["readers", "0", "Redis"],
        ["last publication", "never", "Redis"],
    ]
    tracker.mark_unread([category])
    for reader in (factories.user(), factories.user()):
        tracker.mark_read(reader, [category])
    flush()
    tracker.mark_read(factories.user(), [category])
    readers, publication = table(show(subject))
    assert readers == ["readers", "3", "Redis"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", publication[1])
    wire.cut()
    assert table(show(subject)) == [
        ["last publication", "unknown", "only Redis knows it"],
        ["readers", "2", "SQL, by the last full flush"],
    ]


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        ("blog.pots:1", r"'blog.pots' is no model with counts or read state. .*site.post"),
        ("post", r"'post' is no model with counts or read state"),
        ("auth.group:1", r"'auth.group' is no model with counts or read state"),
        ("site.post:4242", r"There is no object 'site.post:4242' in site.Post."),
        ("site.post:abc", r"There is no object 'site.post:abc'"),
        ("site.post:99999999999999999999999", r"There is no object"),
        ("site.post", r"There is no object 'site.post'"),
        ("site.page:a%00b", r"There is no object"),
    ],
)
def test_a_wrong_subject_is_said_in_words(subject: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        show(subject)
