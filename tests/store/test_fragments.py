"""A counted view costs what the core and the installed parts need: their keys, arguments and Lua."""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import parts, tracker
from readtrack.hits.hit import Hit
from readtrack.hits.visitors import Visitor
from readtrack.store import keys, scripts
from readtrack.store.counting import count_views
from tests.support import factories
from tests.support.forks import Forks

TRIAL = "tests.store.trial_part"

CORE_ALONE = """
import json
import django
from django.conf import settings

settings.INSTALLED_APPS = [
    name for name in settings.INSTALLED_APPS if not name.startswith("readtrack.")
]
settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"dimensions": ["channel"]}}
django.setup()
from django.core.management import call_command
from redis import Redis

call_command("migrate", verbosity=0, run_syncdb=True)

from readtrack import reports, tracker
from readtrack.store import keys, read_state, scripts
from readtrack.store.counting import count_views
from tests.support import factories

redis = Redis.from_url(settings.CACHES["default"]["LOCATION"], decode_responses=True)
read_state.begin(0)
post, category, ann = factories.post(), factories.category(), factories.user()
tracker.publish([category])
before = set(redis.keys())
unread = [reports.unread_counts(ann, [category])[category]]
factories.browser(ann).get(f"/posts/{post.pk}/")
names = set(redis.keys()) - before
tracker.mark_read(ann, [category])
unread += [reports.unread_counts(ann, [category])[category]]
[trend] = reports.trending()
with_a_value = scripts.run(count_views(factories.hit("site.post:7", dimensions=(("channel", "mail"),))))
call = count_views(factories.hit("site.post:7", "site.post:8"))
print(json.dumps({
    "keys": [keys.parse(name)[0].pattern for name in names],
    "views": reports.views([post])[post],
    "unread": unread,
    "is trending": trend.obj == post,
    "with a value": with_a_value.counted,
    "keys of two views": len(call.keys),
    "lua": scripts._source("record"),
}))
"""


@pytest.mark.one_server("starts a site of its own")
def test_the_core_alone_counts_views_and_writes_only_its_own_keys(
    bare_forks: Forks, redis: Redis, redis_url: str
) -> None:
    done = bare_forks.run(
        CORE_ALONE,
        DJANGO_SETTINGS_MODULE="tests.settings",
        DATABASE_URL="sqlite:///:memory:",
        READTRACK_TEST_REDIS_URL=redis_url,
    )
    assert done.code == 0, done.output
    found = json.loads(done.output)
    source = found.pop("lua")
    assert not [word for word in ("hour", "day_visitors", "funnel") if word in source]
    assert sorted(found.pop("keys")) == [
        "rate:{visitor}",
        "trending:bucket:{minute}",
        "viewed:{visitor}:{subject}",
        "views:changed",
        "views:hll:{subject}",
        "views:total:{subject}",
        "views:unsettled",
        "visitors:minute:{minute}:{model}",
    ]
    assert found == {
        "views": 1,
        "unread": [1, 0],
        "is trending": True,
        "with a value": ["site.post:7"],
        "keys of two views": 4 + 2 * 4,
    }


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("part", parts.installed(), ids=lambda part: part.label)
def test_each_fragment_says_what_it_takes(part: parts.PartConfig) -> None:
    for path in Path(part.path).glob("lua/*.lua"):
        head = path.read_text().partition("\n\n")[0]
        assert head.startswith("-- ")
        words = ["KEYS:", "ARGV:", "Returns:"] if path.stem in part.scripts else ["Takes"]
        assert all(word in head for word in words)


@pytest.fixture
def trial_part(settings: Settings) -> None:
    """Installs another part behind all parts that come with readtrack."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, TRIAL]
    assert parts.installed()[-1].name == TRIAL


def hits() -> list[Hit]:
    """Returns hits of two minutes and models; one of them has two views, and Ann's has an effect."""
    minute = datetime(2026, 11, 20, 11, 59, tzinfo=timezone.utc)
    rows = [
        ("ann", minute, ["site.post:1"]),
        ("bob", minute, ["site.post:1"]),
        ("cleo", minute, ["site.product:1"]),
        ("dan", minute, ["site.post:1", "site.product:1"]),
        ("eve", minute + timedelta(minutes=1), ["site.post:1"]),
        ("fay", minute + timedelta(minutes=1), ["site.post:2"]),
        ("fay", minute + timedelta(minutes=1), ["site.post:2"]),  # a repeat
    ]
    return [factories.hit(*views, visitor=Visitor(name), at=at) for name, at, views in rows]


def written(redis: Redis) -> dict[str, Any]:
    """Returns what the parts have written."""
    names = [*redis.keys("views:hour*"), *redis.keys("trial:*")]
    read: dict[str, Any] = {"string": redis.get, "hash": redis.hgetall}
    return {str(name): read[str(redis.type(name))](name) for name in names}


WRITTEN = {
    "views:hours:site.post:1": {"2026112011": "3", "2026112012": "1"},
    "views:hours:site.post:2": {"2026112012": "1"},
    "views:hours:site.product:1": {"2026112011": "2"},
    "views:hour:2026112011:site.post": "3",
    "views:hour:2026112011:site.product": "2",
    "views:hour:2026112012:site.post": "2",
    "trial:model:202611201159:site.post": {"ann": "3", "bob": "3", "dan": "3"},
    "trial:model:202611201159:site.product": {"cleo": "3", "dan": "3"},
    "trial:model:202611201200:site.post": {"eve": "3", "fay": "3"},
    "trial:subject:site.post:1": {"ann": "3", "bob": "3", "dan": "3", "eve": "3"},
    "trial:subject:site.post:2": {"fay": "3"},
    "trial:effect:site.post:1": "6",
}


@pytest.mark.needs_parts("numbers")
@pytest.mark.one_server("names keys without partitions")
@pytest.mark.usefixtures("trial_part")
def test_a_view_has_the_keys_of_each_part_in_the_order_of_the_apps() -> None:
    [hit, *_] = hits()
    call = count_views(hit)
    assert call.keys == [
        keys.rate("ann"),
        "views:unsettled",
        "trending:bucket:202611201159",
        "views:changed",
        "views:total:site.post:1",
        "visitors:minute:202611201159:site.post",
        "views:hll:site.post:1",
        "viewed:ann:site.post:1",
        "views:hours:site.post:1",
        "views:hll:day:20261120:site.post:1",
        "trial:subject:site.post:1",
        "views:hour:2026112011:site.post",
        "trial:model:202611201159:site.post",
        "trial:effect:site.post:1",
    ]


@pytest.mark.usefixtures("trial_part")
@pytest.mark.needs_parts("cluster")
def test_all_keys_of_a_view_are_of_its_partition(settings: Settings) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 16}}
    [hit, *_] = hits()
    call = count_views(hit, hits=1)
    assert {keys.tag_in(name) for name in call.keys} == {keys.tag("site.post:1")}


@pytest.mark.needs_parts("numbers")
@pytest.mark.one_server("names keys without partitions")
def test_the_hours_and_visitors_of_a_day_expire(redis: Redis) -> None:
    tracker.record(factories.hit("site.post:1"))
    [hours, day, model_hour] = (
        redis.ttl(name)
        for pattern in ("hours:*", "hll:day:*", "hour:*:site.post")
        for name in redis.keys(f"views:{pattern}")
    )
    assert {hours, day, model_hour} <= {keys.hours.ttl - 1, keys.hours.ttl}


@pytest.mark.needs_parts("numbers")
@pytest.mark.one_server("names keys without partitions")
@pytest.mark.usefixtures("trial_part")
def test_each_part_gets_its_keys(redis: Redis) -> None:
    for hit in hits():
        tracker.record(hit)
    assert written(redis) == WRITTEN


@pytest.mark.needs_parts("buffer", "numbers")
@pytest.mark.one_server("names keys without partitions")
@pytest.mark.usefixtures("trial_part")
def test_each_part_gets_its_keys_of_a_batch(redis: Redis) -> None:
    from readtrack.buffer import batch
    from readtrack.buffer.batch import PlainView

    by_calls = [batch.entry_of_call(count_views(hit)) for hit in hits()]
    plain = [PlainView.fields_of(hit) for hit in hits()]
    assert [fields is None for fields in plain] == [True, False, False, True, False, False, False]
    as_they_wait = [
        entry if fields is None else batch.entry_of_view(PlainView(*fields), prefix="")
        for entry, fields in zip(by_calls, plain, strict=True)
    ]
    for entries in (by_calls, as_they_wait):
        redis.flushdb()
        reasons = scripts.run(batch.count_batch(entries))
        assert reasons == [[], [], [], [], [], [], ["repeat"]]
        assert written(redis) == WRITTEN
