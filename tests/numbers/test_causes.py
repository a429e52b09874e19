"""Why a story's views rose or fell: rules over views that were counted, and words with their numbers."""

import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from itertools import product
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from readtrack import buckets
from readtrack.numbers import local_time, words_of_causes
from readtrack.numbers.causes import Cause, Difference, Kind, NotedDay, Part, cause_of
from readtrack.numbers.chance import may_be_chance
from readtrack.numbers.models import BreakdownHistory, DayBreakdown, Note
from readtrack.numbers.words_of_causes import phrase_of_cause, sentences_of_cause
from readtrack.subjects import subject_of
from tests.site.models import Article
from tests.support.growth import story_that_grew
from tests.support.rows import each_row
from tests.test_locale import of_code

DASHBOARD = "/admin/readtrack/dashboard/"
Views = Mapping[str, tuple[int, int]]  # before and now, by value


def difference(**dimensions: Views) -> Difference:
    """Returns the difference of a story, all of whose views have a value of the first dimension."""
    [first, *_] = dimensions.values()
    return Difference(
        now=sum(now for _, now in first.values()),
        before=sum(before for before, _ in first.values()),
        values_now={
            name: Counter({value: now for value, (_, now) in views.items()})
            for name, views in dimensions.items()
        },
        values_before={
            name: Counter({value: before for value, (before, _) in views.items()})
            for name, views in dimensions.items()
        },
    )


def told(cause: Cause | None) -> tuple[str, list[str]] | None:
    return None if cause is None else (cause.kind, [part.value for part in cause.parts])


@each_row(
    ("referrer", "expected"),
    [
        # One source brought most of it.
        ({"a": (100, 1_000), "b": (500, 840)}, ("one", ["a"])),
        ({"a": (850, 1_850), "b": (150, 150)}, ("one", ["a"])),  # the other one did not grow
        ({"a": (5_000, 5_750), "b": (5_000, 5_250)}, ("one", ["a"])),
        ({"a": (8_500, 17_400), "b": (1_500, 2_600)}, ("one", ["a"])),  # the other one lags behind
        ({"a": (0, 900), "b": (500, 840)}, ("new", ["a"])),
        ({"a": (0, 900), "b": (500, 840), "other": (1, 0)}, ("one", ["a"])),  # may have been in it
        ({"a": (100, 1_600), "b": (500, 240)}, ("beyond", ["a"])),
        ({"direct": (600, 1_200)}, ("one", ["direct"])),
        # It is missing.
        ({"a": (1_000, 100), "b": (840, 500)}, ("one", ["a"])),
        ({"a": (900, 0), "b": (840, 500)}, ("gone", ["a"])),
        ({"a": (1_600, 100), "b": (240, 500)}, ("beyond", ["a"])),
        # Two did.
        ({"a": (10, 410), "b": (10, 410), "c": (1_000, 1_200)}, ("two", ["a", "b"])),
        ({"a": (410, 10), "b": (410, 10), "c": (1_200, 1_000)}, ("two", ["a", "b"])),
        # All did.
        ({"a": (900, 1_800), "b": (500, 1_010)}, ("alike", ["a"])),
        ({"a": (1_800, 900), "b": (1_010, 500)}, ("alike", ["a"])),
        ({"a": (9_000, 18_000), "b": (5, 7)}, ("one", ["a"])),  # the other one is too small
        # Many did.
        (
            {**{f"{number}": (10, 110) for number in range(9)}, "z": (2_000, 2_000)},
            ("many", ["0"]),
        ),
        # So little that it may be chance.
        ({"a": (10, 20), "b": (10, 10)}, None),
        ({"a": (1_000, 1_050)}, None),
    ],
)
def test_the_source_of_the_difference_is_told(
    referrer: Views, expected: tuple[str, list[str]] | None
) -> None:
    assert told(cause_of(difference(referrer=referrer))) == expected


@each_row(
    ("dimensions", "expected"),
    [
        # A campaign is closer to a cause than the site that has its link, and that than its channel.
        (
            {
                "referrer": {"a": (100, 1_000), "b": (500, 840)},
                "campaign": {"spring": (0, 700)},
            },
            ("new", ["spring"]),
        ),
        (
            {
                "referrer": {"a": (100, 1_000), "b": (500, 840)},
                "channel": {"search": (100, 1_000), "direct": (500, 840)},
                "campaign": {"spring": (0, 70)},
            },
            ("one", ["a"]),
        ),
        (
            {
                "referrer": {"a": (10, 210), "b": (10, 210), "c": (10, 210), "d": (900, 1_000)},
                "channel": {"social": (30, 630), "direct": (900, 1_000)},
            },
            ("one", ["social"]),
        ),
        # Most readers are always in one country, which says nothing.
        (
            {
                "referrer": {"a": (500, 1_000), "b": (500, 1_000)},
                "country": {"DE": (900, 1_800), "FR": (100, 200)},
            },
            ("alike", ["a"]),
        ),
        (
            {
                "referrer": {"a": (500, 1_000), "b": (500, 1_000)},
                "country": {"DE": (900, 1_100), "BR": (100, 900)},
            },
            ("one", ["BR"]),
        ),
        # Without sources there is no word of them.
        ({"device": {"phone": (500, 1_000), "desktop": (500, 1_000)}}, None),
        # Few views have a value: nobody knows of the others.
        ({"referrer": {"": (500, 1_000)}, "plan": {"free": (100, 600)}}, ("one", [""])),
    ],
)
def test_what_is_closest_to_a_cause_is_told(
    dimensions: Mapping[str, Views], expected: tuple[str, list[str]] | None
) -> None:
    assert told(cause_of(difference(**dimensions))) == expected


def test_nothing_is_said_of_sources_that_few_views_have() -> None:
    known = difference(referrer={"a": (100, 1_000), "b": (500, 840)})
    assert cause_of(known)
    assert cause_of(replace(known, now=2_400)) is None
    assert cause_of(replace(known, before=800)) is None


@each_row(
    ("referrer", "expected"),
    [
        ({"a": (0, 600), "b": (0, 400)}, ("one", ["a"])),
        ({"a": (0, 400), "b": (0, 300), "c": (0, 300)}, ("two", ["a", "b"])),
        ({f"{number}": (0, 100) for number in range(10)}, ("many", ["0"])),
        ({"a": (0, 20), "b": (0, 9)}, None),
    ],
)
def test_since_its_publication_all_views_of_a_story_have_sources(
    referrer: Views, expected: tuple[str, list[str]] | None
) -> None:
    views = difference(referrer=referrer, country={"DE": (0, 1_000)})
    assert told(cause_of(views, is_since_publication=True)) == expected


@each_row(
    ("referrer", "expected"),
    [
        ({"a": (0, 45), "b": (400, 400)}, None),  # the other one did not change
        ({"a": (400, 445), "b": (0, 0)}, None),  # the other one has no views
        ({"a": (0, 45), "b": (400, 390)}, None),  # the other one went the other way
        ({"a": (0, 45), "other": (400, 390)}, None),
        ({"a": (0, 45), "b": (400, 401)}, ("many", ["a"])),
        ({"a": (0, 45), "other": (400, 401)}, ("many", ["a"])),
        ({"a": (45, 0), "b": (400, 400)}, None),
        ({"a": (45, 0), "b": (400, 399)}, ("many", ["a"])),
    ],
)
def test_several_sources_are_two_at_least_that_brought_something(
    referrer: Views, expected: tuple[str, list[str]] | None
) -> None:
    known = difference(referrer=referrer)
    unknown = 60  # views more, or fewer, that have no source
    found = replace(known, now=known.now + unknown)
    if known.sign < 0:
        found = replace(known, before=known.before + unknown)
    assert told(cause_of(found)) == expected


def test_what_is_told_is_true_to_the_numbers_of_random_histories() -> None:
    """Whatever the numbers are, no sentence names more views than there are."""
    rng = Random(44)
    kinds = Counter[str]()
    for _ in range(4_000):
        size = rng.choice([40, 400, 4_000])
        values = {}
        for number in range(rng.randint(1, 6)):
            before, now = rng.randrange(size), rng.randrange(size)
            values[f"{number}"] = (rng.choice([0, before]), rng.choice([0, now]))
        is_since = rng.random() < 0.2
        if is_since:
            values = {value: (0, now) for value, (_, now) in values.items()}
        if rng.random() < 0.3:
            common = rng.uniform(0.3, 3)
            values = {value: (now, round(now * common)) for value, (_, now) in values.items()}
            is_since = False
        asked = difference(referrer=values)
        cause = cause_of(asked, is_since_publication=is_since)
        if cause is None:
            continue
        kinds[cause.kind] += 1
        [text, *_] = sentences_of_cause(cause)
        assert "%(" not in text
        assert re.search(r"\d", text)
        for part in cause.parts:
            assert (part.before, part.now) == values[part.value]
            assert asked.brought(part) > 0
        together = asked.brought(*cause.parts)
        if cause.kind == "alike":
            for part in asked.parts("referrer"):
                assert asked.brought(part) >= 0 or may_be_chance(part.now, part.before)
        if cause.kind in ("one", "two", "new", "gone"):
            assert 2 * together >= asked.size
        assert (cause.kind == "beyond") == (together > asked.size)
    assert set(kinds) == {"new", "gone", "one", "beyond", "two", "alike", "many"}
    assert min(kinds.values()) > 10, kinds


def causes() -> Iterator[Cause]:
    """Yields a cause for each combination of what the words depend on."""
    kinds: list[Kind] = ["one", "beyond", "two", "alike", "many"]
    for kind, (before, now) in product(kinds, ((600, 1_840), (1_840, 600))):
        parts = [Part("referrer", "news.example", now - 100, before - 90)]
        if kind == "two":
            parts.append(Part("campaign", "spring", 200, 190))
        yield Cause(kind, now, before, parts)
    yield Cause("new", 1_840, 600, [Part("channel", "search", 900, 0)])
    yield Cause("gone", 600, 1_840, [Part("channel", "search", 0, 900)])
    noted = NotedDay(date.max, 31, "On air")
    yield Cause("one", 1_840, 600, [Part("country", "BR", 900, 0)], noted=noted)
    yield Cause("one", 600, 1_840, [Part("country", "BR", 0, 900)])
    kinds_since: list[Kind] = ["one", "two", "many"]
    for kind in kinds_since:
        parts = [Part("referrer", "news.example", 900, 0), Part("referrer", "direct", 100, 0)]
        yield Cause(kind, 1_840, 0, parts, is_since_publication=True)


def test_each_sentence_is_reached_and_has_its_numbers() -> None:
    said = [phrase_of_cause(cause) for cause in causes()]
    for cause in causes():
        said += sentences_of_cause(cause)
    assert not [text for text in said if "%(" in text]
    for _context, msgid in of_code(inspect.getsource(words_of_causes)):
        pattern = re.sub(r"%\\\(\w+\\\)s", ".+", re.escape(msgid))
        # Of a difference of one view nothing is said.
        many = re.sub(r"\bis\b", "(?:is|are)", re.sub(r"\bview\b", "views?", pattern))
        assert any(re.search(many, text) for text in said), msgid
    assert all(re.search(r"\d", text) for cause in causes() for text in sentences_of_cause(cause))


def test_the_words_have_the_names_of_people() -> None:
    new = Cause("new", 1_840, 600, [Part("channel", "search", 900, 0)])
    assert sentences_of_cause(new) == [
        "Of 1,240 views more than before, 900 came from a source that had brought none before:"
        " Search engines."
    ]
    assert phrase_of_cause(new) == "Search engines +900"
    campaign = Cause("one", 1_840, 600, [Part("campaign", "spring\n<b>", 900, 8)])
    assert sentences_of_cause(campaign) == [
        "Of 1,240 views more than before, 892 came from one source: campaign spring <b>."
    ]
    beyond = Cause("beyond", 9_448, 600, [Part("referrer", "a.example", 9_000, 32)])
    assert sentences_of_cause(beyond) == [
        "a.example: 8,968 views more than before, and all other sources together 120 fewer."
    ]
    assert (sentences_of_cause(None), phrase_of_cause(None)) == ([], "")


@pytest.fixture
def article(settings: Settings) -> Article:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer", "country"]}}
    return story_that_grew()


@pytest.mark.django_db
def test_the_page_of_a_story_says_why_it_grew(article: Article, admin_client: Client) -> None:
    sentence = "Of 720 views more than before, 700 came from one source: news.example."
    address = f"{DASHBOARD}object/{subject_of(article)}/"
    page: Any = admin_client.get(address, {"period": "7"})
    assert sentence in page.text
    # Nothing is compared, or not with the same part of days.
    for given in ({"period": "all"}, {"period": "today"}, {"period": "7", "compare": "none"}):
        assert "came from" not in admin_client.get(address, given).text
    # It was not published for all of the days before, so nobody knows whether it grew.
    published = article.published_at
    Article.objects.filter(pk=article.pk).update(published_at=buckets.now() - 10 * buckets.DAY)
    assert "came from one" not in admin_client.get(address, {"period": "7"}).text
    Article.objects.filter(pk=article.pk).update(published_at=published)
    filtered = admin_client.get(address, {"period": "7", "referrer": "direct"})
    assert "came from one" not in filtered.text
    since: Any = admin_client.get(address)
    assert since.context["scope"].period == "published"
    assert "Of its 925 views, 780 came from one source: news.example." in since.text


@pytest.mark.django_db
def test_a_page_marks_the_code_of_a_country_whose_name_a_browser_writes(
    article: Article, admin_client: Client
) -> None:
    for model in (DayBreakdown, BreakdownHistory):
        model.objects.update(kind="views:country")
        model.objects.filter(field="news.example").update(field="US")
        model.objects.filter(field="direct").update(field="DE")
    address = f"{DASHBOARD}object/{subject_of(article)}/"
    page: Any = admin_client.get(address, {"period": "7"})
    code = '<span data-country="US"><span>US</span></span>'
    assert f"700 came from readers with this in common: Country, {code}." in page.text
    one = Cause("one", 1_840, 600, [Part("country", "US", 900, 0)])
    [text] = sentences_of_cause(one)
    assert text.endswith("Country, US.")


@pytest.mark.django_db
def test_a_note_on_its_best_day_is_told(article: Article, admin_client: Client) -> None:
    day = local_time.today() - 2 * buckets.DAY
    Note.objects.create(day=day - buckets.DAY, text="Not that day")
    address = f"{DASHBOARD}object/{subject_of(article)}/"
    assert "Its best day" not in admin_client.get(address, {"period": "7"}).text
    Note.objects.create(day=day, text="On <b>air</b>")
    page: Any = admin_client.get(address, {"period": "7"})
    assert "with 760 views; a note on it says: On &lt;b&gt;air&lt;/b&gt;" in page.text


@pytest.mark.django_db
def test_a_dimension_that_was_turned_on_lately_is_no_cause(
    article: Article, admin_client: Client
) -> None:
    """Its views were not counted before."""
    address = f"{DASHBOARD}object/{subject_of(article)}/"
    since = local_time.today() - 4 * buckets.DAY
    BreakdownHistory.objects.update(hour=local_time.first_hour_of(since))
    assert "came from" not in admin_client.get(address, {"period": "7"}).text
    BreakdownHistory.objects.all().delete()  # whenever that was
    assert "came from" in admin_client.get(address, {"period": "7"}).text
    DayBreakdown.objects.filter(day__lt=since).delete()
    assert "came from" not in admin_client.get(address, {"period": "7"}).text


@pytest.mark.django_db
def test_why_costs_no_query_on_the_page(
    article: Article, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"{DASHBOARD}object/{subject_of(article)}/"
    numbers = []
    for _ in range(2):
        admin_client.get(address, {"period": "7"})
        with CaptureQueriesContext(connection) as queries:
            admin_client.get(address, {"period": "7"})
        numbers.append(len(queries))
        monkeypatch.setattr("readtrack.numbers.story.cause_of_story", lambda _data: None)
    assert numbers[0] == numbers[1]


@pytest.mark.django_db
def test_the_overview_says_in_short_why_a_story_grew(
    article: Article, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    page: Any = admin_client.get(DASHBOARD, {"period": "7"})
    [look] = [one for one in page.context["looks"] if one.title == "Grew most"]
    assert [item.remark for item in look.items] == ["+720%: news.example +700"]
    numbers = []
    for most_days in (200, 0):
        monkeypatch.setattr("readtrack.numbers.causes.MOST_DAYS", most_days)
        with CaptureQueriesContext(connection) as queries:
            page = admin_client.get(DASHBOARD, {"period": "7"})
        numbers.append(len(queries))
    assert numbers[0] == numbers[1] + 1
    [look] = [one for one in page.context["looks"] if one.title == "Grew most"]
    assert [item.remark for item in look.items] == ["+720%"]
    # Nothing is said of what is not compared by whole days.
    for given in ({"period": "today"}, {"period": "7", "referrer": "news.example"}):
        assert "news.example +" not in admin_client.get(DASHBOARD, given).text
