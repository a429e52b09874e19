"""Which stories rise now: on their page, in the first lines of the overview, and in its header."""

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from pytest_django import Settings

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.numbers.loading import load
from readtrack.numbers.models import History
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import usual as usual_bands
from readtrack.numbers.sql.gained import WINDOWS, name_of_gains
from readtrack.numbers.sql.usual import Band, name_of_week
from readtrack.numbers.usual_now import compared_in
from readtrack.subjects import subject_of
from tests.site.models import Article
from tests.support import counts, factories, usual

pytestmark = pytest.mark.django_db
DASHBOARD = "/admin/readtrack/dashboard/"


def story(views_of_hour: int, *, hours: int = 29 * 24) -> Article:
    """Returns an article that was published so many hours ago, with so many views in each hour since
    then that is over, but for none in the last one.
    """
    published = buckets.hour_start(buckets.hour_index(buckets.now()) - hours)
    made = Article.objects.create(
        title="The bridge", published_at=published, view_count=views_of_hour * (hours - 1)
    )
    first_hour = buckets.hour_index(published)
    rows = []
    for number in range(hours - 1):
        values = {"hour": first_hour + number, "views": views_of_hour * (number + 1), "visitors": 0}
        rows += [History(subject=name, **values) for name in (subject_of(made), "site.article")]
    History.objects.bulk_create(rows)
    return made


def had(post: Article, *, each: int) -> None:
    """Views the post so often in each minute of the hour before the last five minutes."""
    for ago in range(6, 60):
        at = buckets.now() - ago * buckets.MINUTE
        for _ in range(each):
            tracker.record(factories.hit(subject_of(post), at=at))


def rise(post: Article, views: int) -> None:
    """Views a post that often now."""
    counts.view(*[post] * views)
    flush()
    tracker.refresh_trending()


def trending_of(page: Any) -> Any:
    [table] = [one["table"] for one in page.context["tables"] if one["table"].name == "trending"]
    return table.rows


def page_of(client: Client, post: Any) -> Any:
    return client.get(f"{DASHBOARD}object/{subject_of(post)}/", {"period": "28"})


def test_a_story_that_rises_now_is_not_told_to_be_slowing_down(admin_client: Client) -> None:
    post = story(1)
    rise(post, 40)
    said = page_of(admin_client, post).context["story"]
    assert said.verdict == "Rising now: 40 views in the last five minutes, usually 0.1."
    assert said.tone == "up"
    assert "slowing" not in said.text
    page: Any = admin_client.get(DASHBOARD)
    first, link = page.context["next_steps"][0]
    assert first.text == (
        "Keep it up to date while it rises, with 40 views in the last five minutes, usually 0.1:"
        f" {post}."
    )
    assert subject_of(post) in link.replace("%3A", ":")


def test_what_rises_now_does_not_after_a_reset(admin_client: Client) -> None:
    post = story(1)
    other = Article.objects.create(title="The harbour", published_at=post.published_at)
    rise(post, 40)
    rise(other, 35)
    tracker.reset_views(post)
    assert "Rising" not in page_of(admin_client, post).context["story"].text
    page: Any = admin_client.get(DASHBOARD)
    assert [row.values for row in trending_of(page)] == [
        (other, 35)
    ]  # before: 40 views of the other
    assert page.context["next_steps"][0][0].text.startswith(
        "Keep it up to date while it rises, with 35 views"
    )
    rise(post, 3)
    assert [row.values[1] for row in trending_of(admin_client.get(DASHBOARD))] == [35, 3]


@pytest.mark.parametrize(
    ("each", "now", "is_rising"), [(0, 29, False), (0, 30, True), (1, 40, True), (2, 40, False)]
)
def test_few_views_and_views_as_always_are_no_rise(
    each: int, now: int, is_rising: bool, admin_client: Client
) -> None:
    post = story(60 * each)
    had(post, each=each)
    rise(post, now)
    assert ("Rising" in page_of(admin_client, post).context["story"].text) == is_rising
    assert ("while it rises" in admin_client.get(DASHBOARD).text) == is_rising


def test_a_story_that_was_read_for_hours_rises_against_the_day_before(admin_client: Client) -> None:
    """Its average since the publication has the peak of the first day."""
    post = story(600, hours=6)
    Article.objects.filter(pk=post.pk).update(published_at=buckets.now() - timedelta(days=9))
    history = History.objects.filter(subject__startswith="site.article")
    history.update(hour=F("hour") - 9 * 24)
    rise(post, 40)
    assert "Rising" in page_of(admin_client, post).context["story"].text


@pytest.mark.needs_parts("alerts")
@pytest.mark.parametrize("seed", range(4))
def test_what_is_usual_for_a_rise_is_what_it_is_for_an_alert(seed: int) -> None:
    from readtrack.alerts import watching

    chance = random.Random(seed)
    post = story(chance.randrange(1, 200), hours=chance.choice([3, 30, 300]))
    History.objects.create(subject="site.article", hour=1000, views=1, visitors=0)
    had(post, each=chance.randrange(4))
    rise(post, 40)
    slots = range(usual_bands.HOURS_OF_WEEK)
    week = {slot: Band(0, chance.randrange(10, 200), 0) for slot in slots}
    by_age = {}
    for age in usual_bands.AGES:
        by_age[age] = Band(0, 900.0 * age, 0)
        by_age[usual_bands.START + age] = Band(0, 900.0 * usual_bands.age_before(age), 0)
    hourly = chance.choice([1, 600])
    gains = {number: Band(0, hourly * one.length, 0) for number, one in enumerate(WINDOWS)}
    names = {name_of_week(): week, "site.article": by_age, name_of_gains("site.article"): gains}
    usual_bands.replace(names, hour=1)
    tables = ["over-time", "most-viewed", "trending"]
    at = buckets.now()
    data = load(Scope.parse({"period": "7"}), tables)
    if buckets.now().minute != at.minute:  # both have the last minutes, so they have to be the same
        at = buckets.now()
        data = load(Scope.parse({"period": "7"}), tables)
    [(_obj, of_alert)] = watching._stories(week, since=at, at=at)
    of_page = data.stories_now[subject_of(post)]
    assert of_page.minutes == of_alert.minutes
    assert of_page.day == pytest.approx(of_alert.day)
    for length in (3, 5, 30):
        found = compared_in(replace(of_page, running=of_alert.running), length)
        assert found.usual == pytest.approx(compared_in(of_alert, length).usual, rel=0.01)


def test_the_last_hour_has_no_fewer_views_than_the_last_minutes(admin_client: Client) -> None:
    first = story(1)
    second = Article.objects.create(title="The harbour", published_at=first.published_at)
    rise(first, 40)
    rise(second, 39)
    counts.view(*[second] * 3)  # after the last refresh of the list
    page: Any = admin_client.get(DASHBOARD)
    said = page.context["next_steps"][0][0].text
    assert said.startswith("Keep it up to date while it rises, with 42 views in the last five")
    # Before: 40 and 39.
    assert [row.values for row in trending_of(page)] == [(second, 42), (first, 40)]


@pytest.mark.parametrize("minutes", [4, 55])
def test_a_new_story_rises_after_an_hour_at_the_earliest(
    minutes: int, admin_client: Client
) -> None:
    usual.begin()
    published = buckets.now() - timedelta(minutes=minutes)
    post = Article.objects.create(published_at=published)
    rise(post, 40)
    assert "Rising" not in page_of(admin_client, post).context["story"].verdict
    assert "while it rises" not in admin_client.get(DASHBOARD).text


def test_nothing_rises_in_the_first_hour_of_counting(admin_client: Client) -> None:
    published = buckets.now() - timedelta(days=900)
    post = Article.objects.create(published_at=published)
    rise(post, 40)
    assert "Rising" not in page_of(admin_client, post).context["story"].text


def test_the_stories_of_a_category_rise_whatever_trends_elsewhere(admin_client: Client) -> None:
    section = factories.category(name="Politics")
    post = story(1)
    Article.objects.filter(pk=post.pk).update(category=section)
    others = [Article.objects.create(title=f"Other {number}") for number in range(10)]
    counts.view(*others * 41)
    rise(post, 40)
    page: Any = admin_client.get(DASHBOARD, {"category": subject_of(section)})
    assert [step.text for step, _ in page.context["next_steps"] if "rises" in step.text]


def test_an_earlier_period_has_no_rise(admin_client: Client) -> None:
    post = story(1)
    rise(post, 40)
    page: Any = admin_client.get(f"{DASHBOARD}object/{subject_of(post)}/", {"period": "yesterday"})
    assert "Rising" not in page.text


def test_views_whose_source_is_not_known_yet_are_told(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer"]}}
    post = factories.post()
    for _ in range(3):
        tracker.record(factories.hit(subject_of(post), dimensions=(("referrer", "a.example"),)))
    flush()
    unknown = "more views have no known source."
    assert unknown not in admin_client.get(DASHBOARD).text
    counts.view(post, post)
    page: Any = admin_client.get(DASHBOARD)
    said = f"2 {unknown} Sources of the last minutes follow."
    assert page.context["sources"].caption == said  # before: as if nobody would ever know them
    assert f"2 {unknown}" in page_of(admin_client, post).text


@pytest.mark.needs_parts("alerts")
def test_the_header_says_how_many_alerts_are_open(admin_client: Client, settings: Settings) -> None:
    from readtrack.alerts.models import Alert

    settings.READTRACK = {"ALERTS": {"site": "https://news.example"}}
    labels = [label for label, _ in admin_client.get(DASHBOARD).context["links"]]
    assert "Alerts: on" in labels
    Alert.objects.create(kind=Alert.Kind.STORY, name="story:1", started=buckets.now(), title="One")
    labels = [label for label, _ in admin_client.get(DASHBOARD).context["links"]]
    assert "1 open alert" in labels
    assert "Alerts: on" not in labels
