"""Notes on charts come by themselves: of the site's code, of deployments, and of publications."""

from datetime import date, datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as zones
from pytest_django import Settings

from readtrack.access import numbers_url
from readtrack.flush.run import flush
from readtrack.numbers import publications
from readtrack.numbers.models import Note
from readtrack.numbers.notes import note
from readtrack.subjects import subject_of
from tests.dashboard.test_comparison import OF_THE_ADMIN
from tests.site.models import Article
from tests.support import counts, factories
from tests.support.costs import OF_THE_OVERVIEW

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"


def notes(client: Client, path: str = "", **given: str) -> list[str]:
    context: Any = client.get(DASHBOARD + path, given).context
    texts = []
    for mark in context["chart"].marks:
        marked = [one.text for one in (*mark.notes, *mark.published)]
        if mark.publications > len(mark.published):
            marked.append(f"{mark.publications} published")
        texts.append("; ".join(marked))
    return [text for text in texts if text]


def test_a_note_of_the_sites_code_is_on_the_chart_once(admin_client: Client) -> None:
    assert note("Newsletter sent")
    assert not note("Newsletter sent")
    assert note("Newsletter sent", at=zones.localdate() - timedelta(days=1))
    assert note("x" * 300)
    assert not note(" " + "x" * 300)
    assert note("a\nb\0c")
    assert notes(admin_client) == ["Newsletter sent", f"Newsletter sent; {'x' * 200}; a b c"]


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_a_note_without_a_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="needs a text"):
        note(text)
    with pytest.raises(CommandError, match="needs a text"):
        call_command("readtrack", "note", text)


def test_a_time_means_its_day_in_the_sites_time_zone(settings: Settings) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    note("late", at=datetime(2026, 3, 1, 20, tzinfo=timezone.utc))
    assert Note.objects.get().day == date(2026, 3, 2)


def test_a_deployment_notes_itself(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("readtrack", "note", "deployed 1.2")
    call_command("readtrack", "note", "deployed 1.2")
    call_command("readtrack", "note", "deployed 1.1", "--day", "2026-03-01")
    assert capsys.readouterr().out.splitlines() == [
        "Added the note.",
        "The day has this note already.",
        "Added the note.",
    ]
    assert [str(note) for note in Note.objects.all()] == ["deployed 1.1", "deployed 1.2"]
    with pytest.raises(CommandError, match="is no day"):
        call_command("readtrack", "note", "x", "--day", "yesterday")


def published(ago: timedelta, **values: Any) -> Article:
    return Article.objects.create(published_at=zones.now() - ago, **values)


def test_the_chart_of_an_object_has_a_mark_at_its_publication(admin_client: Client) -> None:
    article = published(timedelta(days=2))
    path = f"object/{subject_of(article)}/"
    assert notes(admin_client, path) == ["1 published"]
    assert notes(admin_client, path, period="28") == ["1 published"]
    assert notes(admin_client, path, period="today") == []
    answer: Any = admin_client.get(
        DASHBOARD + path, {"table": "over-time", "format": "json", "by": "hour"}
    )
    content = answer.getvalue().decode()
    assert content.count("Published") == 1
    assert content.index("Published") < content.index("], [")  # in the first hour


def test_in_a_chart_of_hours_a_publication_is_at_its_hour(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Article, "publication_notes", 2, raising=False)
    night = zones.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    yesterday = night - timedelta(days=1)
    for hour in (2, 20):
        Article.objects.create(published_at=yesterday + timedelta(hours=hour, minutes=50))
    note("Newsletter sent", at=yesterday.date())
    given = {"period": "yesterday", "by": "hour"}
    chart = admin_client.get(DASHBOARD, given).context["chart"]
    numbers = [(mark.publications, len(mark.notes)) for mark in chart.marks]
    # A mark has three hours. Before: all of them were at midnight.
    assert numbers == [(1, 1), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (1, 0), (0, 0)]
    hours = [index for index, row in enumerate(chart.table.rows) if "Published" in row.values[-1]]
    assert hours == [2, 20]
    assert all(mark.begins for mark in chart.marks)  # its label is that of its first hour


def test_few_publications_of_a_day_are_named_and_more_are_counted(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = factories.category()
    for _ in range(3):
        published(timedelta(days=3))
    named = published(timedelta(days=2), category=section)
    published(-timedelta(days=2))  # not published yet
    assert notes(admin_client) == []
    monkeypatch.setattr(Article, "publication_notes", 2, raising=False)
    assert notes(admin_client) == ["3 published", str(named)]
    assert notes(admin_client, category=subject_of(section)) == [str(named)]
    assert notes(admin_client, model="site.post") == []
    assert notes(admin_client, period="today") == []
    assert notes(admin_client, period="28") == []  # they would hide the chart
    monkeypatch.setattr(publications, "MOST_PUBLICATIONS", 3)
    assert notes(admin_client) == []


def test_what_is_named_below_the_chart_leads_to_its_numbers(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Article, "publication_notes", 1, raising=False)
    first = published(timedelta(days=6), title="First")
    newest = [published(timedelta(minutes=age), title="Latest") for age in (3, 2, 1)][-1]
    context: Any = admin_client.get(DASHBOARD, {"compare": "week"}).context
    marks = context["chart"].marks
    links = {note.text: note.link for mark in marks for note in mark.published}
    assert links[str(first)].startswith(numbers_url(first))
    # More than a day can name: the newest has its link nevertheless.
    assert sum(mark.publications for mark in marks) == 4
    assert len(links) == 2
    path, _, parameters = links[str(newest)].partition("?")
    assert path == numbers_url(newest)
    assert dict(parse_qsl(parameters)) == {"compare": "week", "period": "published", "back": "7"}
    page = admin_client.get(links[str(newest)])
    assert page.context["scope"].by == "hour"


def test_notes_about_publications_cost_two_queries(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for days in range(5):
        published(timedelta(days=days))
    counts.view(Article.objects.earliest("pk"))
    flush()  # without a view, or a list of what was viewed most, there is a query more
    numbers = []
    for most in (0, 2):
        monkeypatch.setattr(Article, "publication_notes", most, raising=False)
        notes(admin_client, model="site.article")
        with CaptureQueriesContext(connection) as queries:
            notes(admin_client, model="site.article")
        numbers.append(len(queries) - OF_THE_ADMIN)
    assert numbers[1] - numbers[0] == 2
    assert numbers[1] <= OF_THE_OVERVIEW[0]


def test_models_of_others_have_them_by_the_setting(
    admin_client: Client, settings: Settings
) -> None:
    options = {"counted": True, "published_field": "date_joined", "publication_notes": 5}
    settings.READTRACK = {"MODELS": {"auth.User": options}}
    found = notes(admin_client)
    assert found == ["admin"]
