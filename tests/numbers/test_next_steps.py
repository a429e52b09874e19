"""What to do next: lines from rules that can be read, three at most, off by a setting."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from readtrack import buckets, local_time
from readtrack.flush.run import flush
from readtrack.numbers.loading import load
from readtrack.numbers.models import BreakdownHistory, History
from readtrack.numbers.next_steps import next_steps
from readtrack.numbers.scope import Scope
from readtrack.subjects import subject_of
from tests.site.models import Article

pytestmark = pytest.mark.django_db
DASHBOARD = "/admin/readtrack/dashboard/"


def viewed(views: int, *, age: int, reads: int = 0, **values: Any) -> Article:
    """Returns an article of so many days with such numbers of yesterday."""
    published = buckets.now() - timedelta(days=age)
    made = Article.objects.create(published_at=published, view_count=views, **values)
    hour = local_time.first_hour_of(local_time.today() - buckets.DAY) + 9
    subject = subject_of(made)
    for name, count in ((subject, views), (f"reads:{subject}", reads)):
        History.objects.create(subject=name, hour=hour, views=count, visitors=0)
    for name, count in (("site.article", views), ("reads:site.article", reads)):
        row, _ = History.objects.get_or_create(
            subject=name, hour=hour, defaults={"views": 0, "visitors": 0}
        )
        History.objects.filter(pk=row.pk).update(views=row.views + count)
    return made


def lines() -> dict[str, str]:
    flush()
    data = load(
        Scope.parse({"period": "7", "model": "site.article"}),
        ["over-time", "most-viewed", "by-campaign"],
        row_limit=10,
    )
    return {step.rule: step.sentence.text for step in next_steps(data)}


def test_each_line_follows_a_rule(settings: Settings) -> None:
    old = viewed(400, age=312, reads=200)
    lost = viewed(500, age=3, reads=50)
    viewed(199, age=900, reads=1)  # too few to say anything
    hour = local_time.first_hour_of(local_time.today() - buckets.DAY) + 9
    BreakdownHistory.objects.create(
        subject="site.article", kind="views:campaign", hour=hour, field="spring", count=700
    )
    assert lines() == {
        "old": f"Still read after 312 days, and its links are old: {old}.",
        "losing": f"Loses most readers early, only 10% of its views became reads: {lost}.",
        "campaign": "64% of all views come from one campaign: spring.",
    }
    settings.READTRACK = {"NUMBERS": {"advice": False}}
    assert lines() == {}


def test_where_no_rule_holds_there_is_no_line() -> None:
    viewed(400, age=299, reads=100)
    assert lines() == {}


def test_the_overview_has_them(admin_client: Client) -> None:
    viewed(400, age=400)
    flush()
    assert "Still read after 400 days" in admin_client.get(DASHBOARD, {"period": "7"}).text
