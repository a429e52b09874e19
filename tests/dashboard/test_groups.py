"""Views by category, by author and by age, and old objects that are still read."""

import csv
from collections import Counter
from datetime import datetime, timedelta
from io import StringIO
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.numbers import groups, objects, people
from readtrack.numbers.flush.groups import renew
from readtrack.numbers.models import History
from readtrack.numbers.scope import Scope
from readtrack.sql.faults import Faults
from readtrack.subjects import label_in, subject_of
from tests.dashboard.test_comparison import OF_THE_ADMIN
from tests.site.models import Article, Category, Post
from tests.support import counts, factories
from tests.support.costs import limits_of
from tests.support.rows import pairs
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"
Gains = dict[tuple[str, int], int]  # by subject (of reads, too) and hour


def opened(client: Client, tab: str = "groups", **given: str) -> dict[str, Any]:
    """Returns the tables of the tab by name."""
    context: Any = client.get(DASHBOARD, {"tab": tab, **given}).context
    return {table["table"].name: table for table in context["tables"]}


def numbers(table: Any, *columns: str) -> dict[str, tuple[Any, ...]]:
    """Returns the values of columns by the text of the first one."""
    rows: dict[str, tuple[Any, ...]] = {}
    names = [column.name for column in table["table"].columns]
    for row in table["table"].rows:
        rows[str(row.values[0])] = tuple(row.values[names.index(name)] for name in columns)
    return rows


def view(obj: Any, *names: str) -> None:
    for name in names:
        assert tracker.record(factories.hit(subject_of(obj), visitor=Visitor(name))).counted


def store(gained: Gains) -> None:
    """Stores the history that these gains make, of objects and of models, and adds it up."""
    totals: Counter[str] = Counter()
    rows: dict[tuple[str, int], int] = {}
    for (name, hour), number in sorted(gained.items(), key=lambda item: item[0][1]):
        for subject in (name, label_in(name) if not name.startswith("reads:") else ""):
            totals[subject] += number
            rows[subject, hour] = totals[subject]
    History.objects.bulk_create(
        History(subject=subject, hour=hour, views=views, visitors=0)
        for (subject, hour), views in rows.items()
        if subject
    )
    for model in (Article, Post):
        for obj in model.objects.all():
            model.objects.filter(pk=obj.pk).update(view_count=totals[subject_of(obj)])
    renew(at=buckets.now(), faults=Faults())


def random_gains(rng: Random, objs: list[Any]) -> Gains:
    last = buckets.hour_index(buckets.now()) - 1
    gained: Gains = {}
    for _ in range(900):  # so that there is something on each day
        subject = subject_of(rng.choice(objs))
        hour = last - rng.randrange(24 * 70)
        gained[subject, hour] = rng.randrange(1, 9)
        gained[f"reads:{subject}", hour] = rng.randrange(0, 3)
    return {name: number for name, number in gained.items() if number}


@pytest.mark.parametrize(
    ("given", "seed"),
    [
        ({}, 0),
        ({"model": "site.article"}, 1),
        ({"compare": "week"}, 0),
        ({"filter": "category"}, 1),
        ({"filter": "author", "model": "site.article"}, 0),
    ],
    ids=str,
)
def test_each_period_has_the_numbers_of_a_loop_over_all_gains(
    given: dict[str, str], seed: int, admin_client: Client
) -> None:
    rng = Random(seed)
    sections: list[Category | None] = [None, factories.category(), factories.category()]
    authors = [None, factories.user(), factories.user(first_name="Ann", last_name="Lee")]
    objs: list[Any] = [
        Article.objects.create(category=rng.choice(sections), author=rng.choice(authors))
        for _ in range(8)
    ]
    objs += [factories.post(category=rng.choice(sections)) for _ in range(4)]
    gained = random_gains(rng, objs)
    store(gained)
    filter_name = given.pop("filter", "") if (given := dict(given)) else ""
    chosen = dict(given)
    if filter_name == "category":
        chosen["category"] = subject_of(sections[1])  # type: ignore[arg-type]
        objs = [obj for obj in objs if obj.category_id == sections[1].pk]  # type: ignore[union-attr]
    if filter_name == "author":
        chosen["author"] = str(authors[1].pk)  # type: ignore[union-attr]
        objs = [obj for obj in objs if getattr(obj, "author_id", None) == authors[1].pk]  # type: ignore[union-attr]
    if "model" in chosen:
        objs = [obj for obj in objs if isinstance(obj, Article)]
    periods = ["yesterday", "7", "28", "month"]
    if not filter_name:
        periods.append("all")
    for period in periods:
        scope = Scope.parse({"period": period, "compare": chosen.get("compare", "")})
        tables = opened(admin_client, period=period, **chosen)
        expected_names = {"views-by-section", "views-by-author"} - {f"views-by-{filter_name}"}
        if filter_name == "category":
            expected_names.discard("views-by-section")
        assert tables.keys() == expected_names
        for name, table in tables.items():
            hours = range(10**6) if period == "all" else scope.span.hours
            before = scope.before.hours if scope.before and period != "all" else range(0)
            expected = loop(gained, objs, name, hours, before)
            columns = ["views", "reads"] + (["before"] if before else [])
            found = numbers(table, *columns)
            assert found == {title: row[: len(columns)] for title, row in expected.items()}, (
                period,
                name,
            )


def loop(gained: Gains, objs: list[Any], table: str, hours: range, before: range) -> dict[str, Any]:
    """Returns views, reads and views before, by the title of the group."""
    by_subject = {subject_of(obj): obj for obj in objs}
    now: Counter[str] = Counter()
    reads: Counter[str] = Counter()
    earlier: Counter[str] = Counter()
    for (name, hour), number in gained.items():
        obj = by_subject.get(name.removeprefix("reads:"))
        if obj is None:
            continue
        group = obj.category if table == "views-by-section" else getattr(obj, "author", None)
        if table == "views-by-author" and isinstance(obj, Post):
            continue  # posts have no authors
        title = {"views-by-section": "Without a category"}.get(table, "Without an author")
        if group is not None:
            title = getattr(group, "get_full_name", lambda: "")() or str(group)
        if hour in hours:
            (reads if name.startswith("reads:") else now)[title] += number
        if hour in before and not name.startswith("reads:"):
            earlier[title] += number
    return {
        title: (now[title], reads[title], earlier[title]) for title in {**now, **reads, **earlier}
    }


def test_a_row_leads_to_the_page_of_its_category_or_author(admin_client: Client) -> None:
    section, author = factories.category(name="Sport"), factories.user(username="ann")
    counts.view(Article.objects.create(category=section, author=author), Article.objects.create())
    flush()
    tables = opened(admin_client, period="28")
    links = {
        row.head["text"]: row.link
        for name in ("views-by-section", "views-by-author")
        for row in tables[name]["rows"]
    }
    assert links["Without a category"] == links["Without an author"] == ""
    assert f"category=site.category%3A{section.pk}" in links["Sport"]
    assert f"author={author.pk}" in links["ann"]
    assert "period=28" in links["ann"]
    page: Any = admin_client.get(DASHBOARD + links["Sport"])
    assert page.context["chips"][0].value == "Sport"


@pytest.mark.parametrize("deed", ["move", "delete"])
def test_no_group_has_more_visitors_than_views_after_an_object_has_left_it(
    admin_client: Client, deed: str
) -> None:
    sport, travel = factories.category(name="Sport"), factories.category(name="Travel")
    author = factories.user(username="ann")
    article, other = (Article.objects.create(category=sport, author=author) for _ in range(2))
    view(article, *"abcdefgh")
    view(other, "a")
    flush()
    if deed == "move":
        article.category = travel
        article.author = factories.user(username="bob")
        article.save()
        view(article, "z")
    else:
        article.delete()
    flush()
    tables = opened(admin_client)
    for name in ("views-by-section", "views-by-author"):
        rows = numbers(tables[name], "views", "visitors")
        assert rows
        assert all(1 <= visitors <= views for views, visitors in rows.values())


def test_visitors_of_a_group_are_its_objects_people_together(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    section, author = factories.category(name="Sport"), factories.user(username="ann")
    articles = [Article.objects.create(category=section, author=author) for _ in range(2)]
    post = factories.post(category=section)
    view(articles[0], "a", "b")
    view(articles[1], "b", "c")
    view(post, "c", "d")
    flush()
    tables = opened(admin_client)
    assert numbers(tables["views-by-section"], "views", "visitors") == {"Sport": (6, 4)}
    assert numbers(tables["views-by-author"], "views", "visitors") == {"ann": (4, 3)}
    of_model = opened(admin_client, model="site.article")
    assert numbers(of_model["views-by-section"], "visitors") == {"Sport": (3,)}
    monkeypatch.setattr(people, "MOST_DAYS", 1)
    assert numbers(opened(admin_client)["views-by-section"], "visitors") == {"Sport": (None,)}


def test_a_group_that_is_gone_has_its_key_and_no_link(admin_client: Client) -> None:
    section, author = factories.category(), factories.user()
    counts.view(Article.objects.create(category=section, author=author))
    flush()
    subject, pk = subject_of(section), str(author.pk)
    Article.objects.update(category=None, author=None)
    section.delete()
    author.delete()
    tables = opened(admin_client)
    for name, key in (("views-by-section", subject), ("views-by-author", pk)):
        [row] = tables[name]["rows"]
        assert (row.head["text"], row.link) == (key, "")


def test_an_export_has_all_groups(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "SHOWN", 2)
    for number in range(5):
        counts.view(Article.objects.create(author=factories.user(username=f"author{number}")))
    flush()
    assert len(opened(admin_client)["views-by-author"]["rows"]) == 2
    answer: Any = admin_client.get(DASHBOARD, {"table": "views-by-author", "format": "csv"})
    rows = list(csv.DictReader(StringIO(b"".join(answer.streaming_content).decode())))
    assert {next(iter(row.values())) for row in rows} == {f"author{number}" for number in range(5)}


def test_a_filter_of_all_time_has_no_groups(admin_client: Client) -> None:
    section = factories.category()
    counts.view(Article.objects.create(category=section, author=factories.user()))
    flush()
    given = {"category": subject_of(section)}
    assert "views-by-author" in opened(admin_client, **given)
    assert "views-by-author" not in opened(admin_client, **given, period="all")


def test_a_site_without_groups_has_no_such_tabs(admin_client: Client, settings: Settings) -> None:
    context: Any = admin_client.get(DASHBOARD, {"model": "site.product", "tab": "groups"}).context
    labels = [str(choice.label) for choice in context["tabs"]]
    assert not {"Categories and authors", "Age"} & {*labels}
    settings.READTRACK = {"NUMBERS": {"history": False}}
    context = admin_client.get(DASHBOARD).context
    labels = [str(choice.label) for choice in context["tabs"]]
    assert not {"Categories and authors", "Age"} & {*labels}


def old_and_new(now: datetime) -> dict[str, Article]:
    """Returns articles by their age in days."""
    return {
        str(days): Article.objects.create(
            title=f"{days} days", published_at=now - timedelta(days=days)
        )
        for days in (0, 3, 20, 60, 95, 130, 200)
    }


def test_views_by_age_are_those_of_the_age_at_the_view(admin_client: Client) -> None:
    now = timezone.now()
    articles = old_and_new(now)
    articles["draft"] = Article.objects.create(title="draft")
    gained: Gains = {}
    this_hour = buckets.hour_index(now) - 1
    for number, article in enumerate(articles.values(), start=1):
        gained[subject_of(article), this_hour] = number
    # Was 88 days old then.
    gained[subject_of(articles["95"]), this_hour - 7 * 24] = 50
    store(gained)
    table = opened(admin_client, "age", period="28")["views-by-age"]
    found = numbers(table, "views")
    assert list(found) == [
        "Published on the same day",
        "2 to 7 days",
        "8 to 30 days",
        "31 to 90 days",
        "Older than 90 days",
        "Not known when published",
    ]
    assert [views for (views,) in found.values()] == [1, 2, 3, 4 + 50, 5 + 6 + 7, 8]
    shares = table["table"].values("share")
    assert sum(shares) == pytest.approx(100)


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("has_list", [True, False])
def test_what_was_published_long_before_the_period_and_is_still_read(
    admin_client: Client, *, has_list: bool, filtered: bool
) -> None:
    articles = old_and_new(timezone.now())
    section = factories.category()
    Article.objects.update(category=section)
    for number, article in enumerate(articles.values(), start=1):
        counts.view_times(article, number)
    flush(only_changed=not has_list)
    given = {"category": subject_of(section)} if filtered else {}
    tables = opened(admin_client, "age", period="7", **given)
    # 90 days before a period of seven days
    rows = tables["still-read"]["table"].rows
    assert [(row.values[0].title, row.values[1]) for row in rows] == [
        ("200 days", 7),
        ("130 days", 6),
    ]
    [first, _] = tables["still-read"]["rows"]
    published = articles["200"].published_at
    assert published is not None
    assert str(published.year) in first.head["details"][0]
    assert "object" in first.link
    assert "still-read" not in opened(admin_client, "age", period="all", **given)


@pytest.mark.parametrize(
    ("period", "chosen", "tab", "most"),
    pairs(["today", "28", "all"], ["", "category", "author"], ["groups", "age"], [1, 1_000]),
)
def test_these_tabs_take_few_queries_and_two_trips(
    tab: str,
    period: str,
    most: int,
    chosen: str,
    admin_client: Client,
    wire: Wire,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objects, "MOST", most)
    section, author = factories.category(), factories.user()
    for days in (0, 50, 500):
        published = timezone.now() - timedelta(days=days)
        article = Article.objects.create(category=section, author=author, published_at=published)
        counts.view(article)
    flush()
    values = {"category": subject_of(section), "author": str(author.pk)}
    given = {"period": period, **({chosen: values[chosen]} if chosen else {})}
    opened(admin_client, tab, **given)
    with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
        page: Any = admin_client.get(DASHBOARD, {"tab": tab, **given})
    most_queries, most_trips = limits_of(page)
    assert trips[0] <= most_trips
    assert len(queries) - OF_THE_ADMIN <= most_queries, "\n".join(
        query["sql"][:200] for query in queries
    )
