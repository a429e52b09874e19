"""The numbers and the sentence of a period are the same on the page, in files, by the API and by mail."""

import csv
import json
from io import StringIO
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import Settings
from redis import Redis

from readtrack import buckets
from readtrack.digest.contents import STORIES, Contents, contents_of
from readtrack.digest.mail import letter
from readtrack.digest.periods import DigestPeriod
from readtrack.lines import one_line
from readtrack.numbers import local_time, tables
from readtrack.numbers.models import DayVisitors, History
from readtrack.subjects import subject_of
from tests.api.conftest import answered
from tests.dashboard.test_groups import store
from tests.site.models import Article
from tests.support import digests, factories, usual
from tests.support.depth import examples
from tests.support.people import add_people

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.needs_parts("api", "dashboard", "digest", "numbers"),
]
DASHBOARD = "/admin/readtrack/dashboard/"
OBJECTS = 4


class Gain(NamedTuple):
    """The views and reads that an object gained on a day."""

    age: int  # of the day
    number: int  # of the object
    views: int
    reads: int


GAINS = st.builds(
    Gain,
    age=st.integers(0, 25),
    number=st.integers(0, OBJECTS - 1),
    views=st.integers(1, 60),
    reads=st.integers(0, 9),
)
PEOPLE = st.lists(st.tuples(st.integers(0, 25), st.sampled_from("abcdef")), max_size=8)


@pytest.fixture(autouse=True)
def _digest(settings: Settings) -> None:
    settings.READTRACK = {"DIGEST": digests.DIGEST}


def make(gains: list[Gain], people: list[tuple[int, str]], *, weekly: int) -> None:
    """Stores this history of new articles. `weekly` are the views of each day of ten weeks.

    With enough of them it is known what is usual on a day of the week.
    """
    for model in (DayVisitors, History, Article):
        model._default_manager.all().delete()
    now = buckets.now()
    ages = (400, 40, 5, 1)  # of the articles, in days
    articles = [
        Article.objects.create(title=f"Article {number}", published_at=now - age * buckets.DAY)
        for number, age in enumerate(ages)
    ]
    gained: dict[tuple[str, int], int] = {}

    def add(name: str, age: int, count: int) -> None:
        hour = local_time.first_hour_of(local_time.today() - age * buckets.DAY)
        gained[name, hour] = gained.get((name, hour), 0) + count

    for age in range(70):
        add(subject_of(articles[0]), age, weekly)
    for gain in gains:
        subject = subject_of(articles[gain.number])
        add(subject, gain.age, gain.views)
        for name in (f"reads:{subject}", "reads:site.article"):
            add(name, gain.age, gain.reads)
    store({name: count for name, count in gained.items() if count})
    for age, person in people:
        add_people(["site.article"], [person], day=local_time.today() - age * buckets.DAY)
    usual.renew()


def file_of(editor: User, table: str, file_format: str, **given: str) -> str:
    """Returns a table of the dashboard as a file."""
    parameters = {"table": table, "format": file_format, **given}
    answer: Any = factories.browser(editor).get(DASHBOARD, parameters)
    text: str = b"".join(answer.streaming_content).decode("utf-8-sig")
    return text


def columns_of(editor: User, table: str, *names: str, **given: str) -> list[tuple[Any, ...]]:
    """Returns these columns of a table of the dashboard: those of its JSON file, which the CSV file
    has, too.
    """
    content = json.loads(file_of(editor, table, "json", **given))
    places = [content["columns"].index(name) for name in names]
    of_json = [tuple(row[place] for place in places) for row in content["rows"]]
    _headings, *rows = csv.reader(StringIO(file_of(editor, table, "csv", **given)))
    of_csv = [tuple(row[place] for place in places) for row in rows]
    assert of_csv == [
        tuple("" if value is None else str(value) for value in row) for row in of_json
    ]
    return of_json


def assert_files_agree(editor: User, contents: Contents, **given: str) -> None:
    """Asserts that both files have the numbers of the mail."""
    points = columns_of(editor, "over-time", "views", "reads", **given)
    assert sum(views for views, _reads in points) == contents.views.now
    assert sum(reads or 0 for _views, reads in points) == (contents.reads.now or 0)
    stories = dict(columns_of(editor, "most-viewed", "title", "views", **given))
    assert len(contents.most_viewed) == min(STORIES, len(stories))
    for story in contents.most_viewed:
        assert stories[str(story.obj)] == story.number


@hypothesis_settings(max_examples=examples(15))
@given(
    gains=st.lists(GAINS, max_size=14),
    people=PEOPLE,
    weekly=st.sampled_from([0, 1, 40]),
    last=st.integers(1, 8),  # days ago: a mail is of days that are over
    length=st.sampled_from([1, 7]),
)
def test_page_files_api_and_mail_say_the_same(
    redis: Redis,
    admin_user: User,
    gains: list[Gain],
    people: list[tuple[int, str]],
    weekly: int,
    last: int,
    length: int,
) -> None:
    redis.flushdb()
    make(gains, people, weekly=weekly)
    last_day = local_time.today() - last * buckets.DAY
    period = DigestPeriod(last_day - (length - 1) * buckets.DAY, last_day)
    contents = contents_of(period)
    mail = letter(contents, digests.reader(admin_user))
    page: Any = factories.browser(admin_user).get(DASHBOARD, period.parameters)
    answer = answered(admin_user, "numbers", **period.parameters)

    lead = page.context["lead"]
    sentence = " ".join(
        text for text in (lead.verdict, *(said.text for said, _link in lead.sentences)) if text
    )
    assert answer["summary"] == one_line(sentence)
    if contents.is_empty:
        assert "No views in this period." in mail.body
    else:
        assert sentence in mail.body
    assert answer["verdict"] == contents.verdict.word

    figures = {figure.name: figure for figure in page.context["figures"]}
    for name in ("views", "visitors", "reads"):
        number = getattr(contents, name)
        total = answer["totals"][name]
        assert (total["count"], total["before"]) == (number.now, number.before), name
        if name in figures:
            assert figures[name].value == tables.text(number.now, "number"), name
            assert (
                f"{figures[name].label}: {figures[name].value} (" in mail.body or contents.is_empty
            )
    assert_files_agree(admin_user, contents, **period.parameters)
