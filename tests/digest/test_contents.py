"""The digest tells what the dashboard shows of the same days."""

import json
from collections.abc import Sequence
from datetime import timedelta
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from readtrack import buckets
from readtrack.digest.contents import Contents, Number, Story, _number, contents_of
from readtrack.digest.periods import last_period
from readtrack.flush.run import flush
from readtrack.numbers import local_time
from readtrack.numbers.models import History
from readtrack.numbers.published import published_at
from readtrack.numbers.sql import usual as sql_usual
from readtrack.numbers.sql.usual import Past, name_of_past
from readtrack.numbers.totals import Total
from readtrack.subjects import subject_of
from tests.conftest import use_redis
from tests.dashboard.test_groups import store
from tests.site.models import Article
from tests.support import digests, factories, usual
from tests.support.people import add_people

pytestmark = pytest.mark.django_db
DASHBOARD = "/admin/readtrack/dashboard/"


@pytest.fixture(autouse=True)
def _digest(settings: Settings) -> None:
    settings.READTRACK = {"DIGEST": digests.DIGEST}


def exported(client: Client, contents: Contents, table: str) -> list[dict[str, Any]]:
    """Returns the rows of a table of the dashboard for the same days, as its JSON file has them."""
    path = f"{DASHBOARD}author/" if contents.author else DASHBOARD
    parameters = {**contents.period.parameters, "table": table, "format": "json"}
    answer: Any = client.get(path, parameters)
    file = json.loads(b"".join(answer.streaming_content))
    return [dict(zip(file["columns"], row, strict=True)) for row in file["rows"]]


def assert_first(stories: Sequence[Story], expected: dict[str, int]) -> None:
    """Asserts that the stories are the first five of the expected numbers by title.

    Those of the same number may be in any order.
    """
    numbers = [story.number for story in stories]
    assert numbers == sorted(expected.values(), reverse=True)[:5]
    assert {str(story.obj): story.number for story in stories}.items() <= expected.items()


def random_newsroom(seed: int, authors: list[Any]) -> None:
    """Stores a random history of articles, with their reads and visitors."""
    rng = Random(seed)
    last = buckets.hour_index(buckets.now()) - 1
    gained: dict[tuple[str, int], int] = {}
    for number in range(12):
        published = buckets.now() - timedelta(days=rng.choice([3, 9, 20, 150, 300]))
        obj = Article.objects.create(
            title=f"Article {number}", author=rng.choice(authors), published_at=published
        )
        for _ in range(25):
            hour = last - rng.randrange(24 * 40)
            gained[subject_of(obj), hour] = rng.randrange(1, 9)
            reads = rng.randrange(0, 3)
            gained[f"reads:{subject_of(obj)}", hour] = reads
            of_all = gained.get(("reads:site.article", hour), 0)
            gained["reads:site.article", hour] = of_all + reads
        gained[subject_of(obj), last - 24 * 50] = 1
    store({name: number for name, number in gained.items() if number})


@pytest.mark.parametrize(
    ("seed", "every", "is_of_author"),
    [(0, "week", False), (1, "day", False), (2, "week", True), (0, "day", True)],
)
def test_its_numbers_are_those_of_the_dashboards_files(
    seed: int, every: Any, is_of_author: bool, admin_user: Any
) -> None:
    authors = [admin_user, factories.user()]
    random_newsroom(seed, authors)
    period = last_period(every, at=buckets.now())
    add_people(["site.article"], ["ann", "bob", "eve"], day=period.last_day)
    contents = contents_of(period, author=str(admin_user.pk) if is_of_author else "")
    client = factories.browser(admin_user)
    points = exported(client, contents, "over-time")
    assert contents.views.now == sum(point["views"] for point in points) > 0
    assert contents.views.before == sum(point["before"] or 0 for point in points)
    assert (contents.reads.now or 0) == sum(point["reads"] for point in points)
    assert contents.visitors.now == (0 if is_of_author else 3)  # the author's objects had none
    viewed = exported(client, contents, "most-viewed")
    assert_first(contents.most_viewed, {row["title"]: row["views"] for row in viewed})
    grown = exported(client, contents, "grew-most")
    assert_first(contents.grown, {row["title"]: row["growth"] for row in grown})
    old = exported(client, contents, "still-read")
    assert_first(contents.still_read, {row["title"]: row["views"] for row in old})


def test_what_was_published_since_the_day_a_week_earlier_is_no_story_that_grew(
    admin_user: Any,
) -> None:
    """A story that lost most of its views since the day before has more than before it existed."""
    hour = local_time.first_hour_of(local_time.today() - timedelta(days=1)) + 9
    gained: dict[tuple[str, int], int] = {}
    for title, days_since, views_by_day in (
        ("old", 60, {60: 1, 8: 100, 1: 150}),
        ("old, but found now", 60, {60: 1, 1: 60}),
        ("falls", 2, {2: 5_000, 1: 800}),
        ("a day after", 7, {7: 10, 1: 900}),
        ("in the middle of the day", 8, {8: 10, 1: 700}),
        ("the evening before", 9, {9: 10, 8: 300, 1: 340}),
    ):
        noon = local_time.day_start(local_time.today() - timedelta(days=days_since))
        obj = Article.objects.create(title=title, published_at=noon + timedelta(hours=8))
        for days, views in views_by_day.items():
            gained[subject_of(obj), hour - 24 * (days - 1)] = views
    undated = Article.objects.create(title="without a date")
    gained[subject_of(undated), hour] = 20
    store(gained)
    digests.flush_ended()
    contents = contents_of(last_period("day", at=buckets.now()))
    expected = ["old, but found now", "old", "the evening before", "without a date"]
    assert [story.obj.title for story in contents.grown] == expected
    rows = exported(factories.browser(admin_user), contents, "grew-most")
    assert [row["title"] for row in rows] == [str(story.obj) for story in contents.grown]
    assert [story.obj.title for story in contents.most_viewed][:2] == ["a day after", "falls"]


def test_the_stories_that_did_best_are_those_published_in_the_period() -> None:
    period = digests.week()
    middle = local_time.day_start(period.first_day) + timedelta(days=3)
    age = buckets.now() - middle
    section = factories.category()
    for number in range(12):
        usual.article(age + timedelta(days=9, hours=number), views=10, category=section)
    usual.begin()
    made = {
        title: usual.article(age, views=views, category=section, title=title)
        for title, views in {"twice": 20, "five times": 50, "less": 5}.items()
    }
    usual.article(age + timedelta(days=8), views=90, category=section, title="earlier")
    add_model_hours()
    flush()
    usual.renew()
    best = contents_of(period).best
    assert [story.obj.title for story in best] == ["five times", "twice"]
    assert best[0].number > best[1].number > 1
    assert published_at(best[0].obj) == published_at(made["five times"])


def add_model_hours() -> None:
    """Stores the views of the model in the hours of its articles."""
    total = 1
    for row in History.objects.filter(subject__startswith="site.article:").order_by("hour"):
        total += row.views
        History.objects.update_or_create(
            subject="site.article", hour=row.hour, defaults={"views": total, "visitors": 0}
        )


def test_the_usual_views_are_the_sum_of_those_of_the_days() -> None:
    digests.article(30, before=20)
    assert contents_of(digests.week()).usual_views is None  # of so short a history nothing is usual
    period = digests.week()
    first_hour = local_time.first_hour_of(period.first_day - 4 * buckets.WEEK)
    past = Past(first_hour, [2] * 24 * 7 * 4)
    sql_usual.replace({}, {name_of_past(): past}, hour=1)
    assert contents_of(period).usual_views == 7 * 48
    sql_usual.replace({}, {name_of_past(): Past(first_hour + 1, past.views[1:])}, hour=1)
    assert contents_of(period).usual_views is None  # or else it would lack a day


def test_robots_are_in_the_digest_of_the_site_only() -> None:
    digests.article(3)
    author = factories.user()
    assert contents_of(digests.week()).robots is None
    browser = factories.browser(headers={"User-Agent": "Googlebot/2.1"})
    browser.get(f"/posts/{factories.post().pk}/")
    assert contents_of(digests.week()).robots == 1
    assert contents_of(digests.week(), author=str(author.pk)).robots is None


def test_without_redis_it_has_the_numbers_of_sql(settings: Settings) -> None:
    digests.article(30, before=20)
    use_redis(settings, "redis://127.0.0.1:1/0")
    contents = contents_of(digests.week())
    assert (contents.views.now, contents.views.before) == (30, 20)
    assert contents.robots is None


def test_visitors_without_the_last_day_are_not_beside_those_of_a_week_with_it() -> None:
    """A day is over a minute after it ended; until then visitors are compared without it."""
    chart: Any = SimpleNamespace(is_before_whole=True)
    assert _number(Total("visitors", 70, 60, 55), chart) == Number(70, None)  # before: 55
    assert _number(Total("visitors", 70, 70, 65), chart) == Number(70, 65)
