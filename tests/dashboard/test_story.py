"""The page of a story: how it does, in words and in figures, and where its views came from by day."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.numbers import local_time
from readtrack.numbers.models import Breakdown, DayBreakdown, History, Note
from readtrack.subjects import subject_of
from tests.dashboard.test_comparison import DASHBOARD, OF_THE_ADMIN
from tests.site.models import Article
from tests.support import factories, usual
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


def opened(client: Client, article: Article, **given: str) -> Any:
    return client.get(f"{DASHBOARD}object/{subject_of(article)}/", given)


@pytest.fixture
def article(settings: Settings) -> Article:
    """Returns an article of 50 hours with 64 views, where 20 are usual, and 9 from three channels."""
    settings.READTRACK = {"NUMBERS": {"dimensions": ["channel", "device"]}}
    section = factories.category(name="Politics")
    usual.peers(views=20, category=section)
    made = usual.article(timedelta(hours=50), views=64, category=section, title="On <ice>")
    for age, field, count in ((1, "search", 4), (1, "direct", 2), (0, "search", 3)):
        DayBreakdown.objects.create(
            subject=subject_of(made),
            kind="views:channel",
            day=local_time.today() - age * buckets.DAY,
            field=field,
            count=count,
        )
    flush()
    usual.renew()
    return made


def test_it_says_in_words_how_the_story_does(article: Article, admin_client: Client) -> None:
    page = opened(admin_client, article)
    assert page.context["story"].text.startswith(
        "Far better than usual. It has 64 views after 2 days, where articles in Politics have"
        " about 20."
    )
    assert page.context["kicker"].startswith("Politics, published ")
    assert page.context["place"] == "far above usual"
    assert "<bdi>Article object (" in page.text
    assert "style=" not in page.text[page.text.index('id="content-main"') :]


def test_what_is_of_another_time_than_the_period_says_so(
    article: Article, admin_client: Client
) -> None:
    title = "How far readers get"
    for given, heading, since in (
        ({}, title, ""),
        ({"period": "all"}, title, ""),
        ({"period": "7"}, title, "Since publication"),  # before: nothing
    ):
        page = opened(admin_client, article, **given)
        assert f'<h2 id="readtrack-stages">{heading}</h2>' in page.text
        assert page.context["place_since"] == since
        assert ('<dd class="readtrack-detail">Since publication</dd>' in page.text) == bool(since)


def test_it_has_where_the_views_of_each_day_came_from(
    article: Article, admin_client: Client
) -> None:
    strip = opened(admin_client, article).context["strip_by_day"]
    assert [(source.label, source.share) for source in strip.sources] == [
        ("Search engines", "78%"),
        ("Direct", "22%"),
    ]
    assert [values for _, values in strip.rows][-2:] == [["4", "2"], ["3", "0"]]
    heights = {float(piece.height) for piece in strip.pieces}
    assert heights == {round(70 * views / 6, 1) for views in (4, 2, 3)}
    assert all(0 <= float(piece.x) <= 1000 for piece in strip.pieces)
    filtered = opened(admin_client, article, channel="search")
    assert filtered.context["strip_by_day"] is None
    assert filtered.context["story"].verdict == "Only Search engines."


def test_it_has_how_far_readers_get(article: Article, admin_client: Client) -> None:
    page = opened(admin_client, article)
    assert page.context["stages"] == []
    assert "Templates tell it by the tag readtrack_script" in page.text
    filtered = opened(admin_client, article, channel="search")
    assert "Templates tell it by the tag readtrack_script" not in filtered.text
    assert "Not known for this filter." in filtered.text
    for field, count in (("seen", 60), ("engaged", 32), ("reads", 16), ("5", 30)):
        Breakdown.objects.create(
            subject=subject_of(article), kind="reading", field=field, count=count
        )
    page = opened(admin_client, article)
    assert [stage[:4] for stage in page.context["stages"]] == [
        ("Viewed", "64", "100%", "100%"),
        ("Seen in a browser", "60", "94%", "94%"),
        ("Reader was active", "32", "50%", "53%"),
        ("Read", "16", "25%", "50%"),
    ]
    assert "Median time of reading: " in page.text


def test_how_far_readers_get_is_of_the_period(article: Article, admin_client: Client) -> None:
    """Of all time it was, whatever the period."""
    subject = subject_of(article)
    stages = {"seen": 60, "engaged": 32, "reads": 16}
    for field, count in stages.items():
        Breakdown.objects.create(subject=subject, kind="reading", field=field, count=count)
    title = "How far readers get"
    yesterday = local_time.today() - buckets.DAY
    page = opened(admin_client, article, period="yesterday")
    # Of yesterday no view is known to have been seen, so it is of all time, and says so.
    assert f'<h2 id="readtrack-stages">{title} (All time)</h2>' in page.text
    assert [stage.views for stage in page.context["stages"]] == ["64", "60", "32", "16"]
    hours = range(local_time.first_hour_of(yesterday), local_time.first_hour_of(yesterday) + 2)
    for name, numbers in {
        subject: (71, 74),
        f"seen:{subject}": (6, 8),
        f"engaged:{subject}": (4, 5),
        f"reads:{subject}": (1, 3),
    }.items():
        for hour, number in zip(hours, numbers, strict=True):
            History.objects.create(subject=name, hour=hour, views=number, visitors=0)
    page = opened(admin_client, article, period="yesterday")
    assert f'<h2 id="readtrack-stages">{title}</h2>' in page.text
    assert [stage.views for stage in page.context["stages"]] == ["10", "8", "5", "3"]
    assert opened(admin_client, article, period="all").context["stages"][1].views == "60"


@pytest.mark.parametrize("period", ["published", "today", "7", "all"])
def test_it_keeps_to_its_budget(
    period: str, article: Article, admin_client: Client, wire: Wire
) -> None:
    opened(admin_client, article, period=period)
    with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
        opened(admin_client, article, period=period)
    assert trips[0] <= 3
    assert len(queries) - OF_THE_ADMIN <= 7, [query["sql"][:200] for query in queries]


def test_the_band_begins_with_the_first_hour(article: Article, admin_client: Client) -> None:
    data = opened(admin_client, article).context["data"]
    assert data.scope.by == "hour"
    assert all(data.chart.usual)


def test_it_has_the_notes_of_its_days_and_who_may_adds_one(
    article: Article, admin_client: Client
) -> None:
    assert "No notes on these days." in opened(admin_client, article).text
    today = local_time.today()
    Note.objects.create(day=today, text="On <b>air</b>")
    Note.objects.create(day=today - 30 * buckets.DAY, text="Long before")
    page = opened(admin_client, article)
    assert [note.text for note in page.context["notes"]] == ["On <b>air</b>"]
    assert "<bdi>On &lt;b&gt;air&lt;/b&gt;</bdi>" in page.text
    assert "/readtrack_numbers/note/add/" in page.text
    reader = factories.user(is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_numbers"))
    page = opened(factories.browser(reader), article)
    assert "On &lt;b&gt;air&lt;/b&gt;" in page.text
    assert "/note/add/" not in page.text
