"""What is below usual, and what is opened and hardly read, among all stories of the scope."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.models import Tracked
from readtrack.numbers import below, kept, local_time
from readtrack.numbers.models import History
from readtrack.numbers.objects import Objects
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import popular
from readtrack.sql.faults import Faults
from readtrack.subjects import subject_of
from tests.conftest import Start
from tests.site.models import Article, Category
from tests.support import counts, factories, usual

pytestmark = pytest.mark.django_db
DASHBOARD = "/admin/readtrack/dashboard/"
HOURS_50 = timedelta(hours=50)


def newsroom(low_views: Iterable[int]) -> tuple[Category, list[Article]]:
    """Returns a section whose articles usually have 20 views, and articles with so many views."""
    section = factories.category(name="Politics")
    usual.peers(views=20, category=section)
    articles = [
        usual.article(HOURS_50, views=views, category=section, title=f"{views} views")
        for views in low_views
    ]
    flush()
    usual.renew()
    kept.forget()
    return section, articles


def title_of_text(text: str) -> str:
    """Returns the title of the article that is shown as `Article object (1)`."""
    key = text.partition("(")[2].partition(")")[0]
    return Article.objects.get(pk=key).title


def titles(found: Any) -> list[str]:
    """Returns the titles of a short list."""
    return [title_of_text(item.title) for item in found.items]


def look(client: Client, title: str, **given: str) -> Any:
    """Returns one of the short lists of the overview."""
    page: Any = client.get(DASHBOARD, given)
    return next(one for one in page.context["looks"] if one.title == title)


def rows(client: Client, tab: str, **given: str) -> dict[str, list[str]]:
    """Returns the texts of the cells of the only table of a page, by title."""
    page: Any = client.get(DASHBOARD, {"tab": tab, **given})
    assert page.context["tab"] == tab
    [one] = page.context["tables"]
    return {
        title_of_text(row.head["text"]): [cell["text"] for cell in row.cells] for row in one["rows"]
    }


def test_stories_below_usual_are_found_though_others_have_all_the_views(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.numbers.loading.CANDIDATES", 1)  # of those with most views
    newsroom([1, 2, 4, 6, 8, 40, 50])
    found = look(admin_client, "Below usual", model="site.article")
    assert titles(found) == ["1 views", "2 views", "4 views"]
    assert [item.number for item in found.items] == ["0.1 ×", "0.1 ×", "0.2 ×"]
    listed = rows(admin_client, "below", model="site.article")
    assert [*listed] == ["1 views", "2 views", "4 views", "6 views", "8 views"]
    assert found.more.endswith("tab=below")
    file: Any = admin_client.get(DASHBOARD + found.file.addresses["csv"])
    lines = b"".join(file.streaming_content).decode().splitlines()
    assert [title_of_text(line) for line in lines[1:]] == [*listed]


def test_a_category_has_only_its_own_stories_below_usual(admin_client: Client) -> None:
    section, _ = newsroom([1, 50])
    other = factories.category(name="Chess")
    usual.article(HOURS_50, views=2, category=other, title="Elsewhere")
    found = look(admin_client, "Below usual", category=subject_of(section))
    assert titles(found) == ["1 views"]
    assert [*rows(admin_client, "below", category=subject_of(section))] == ["1 views"]


def test_a_category_with_too_many_stories_has_its_lowest_ones_below_usual(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.numbers.objects.MOST", 11)
    section, [low, _] = newsroom([1, 50])  # and ten others
    given = {"category": subject_of(section)}
    assert titles(look(admin_client, "Below usual", **given)) == ["1 views"]
    assert [*rows(admin_client, "below", **given)] == ["1 views"]

    def found() -> Objects:
        objects = Objects(Scope.parse(given), "views")
        objects.choose()
        objects.find_few(["below-usual"], is_alone=False)
        return objects

    objects = found()
    assert (len(objects.stored), objects.is_cut) == (11, True)
    assert objects.stored[objects.low[0]] == 1
    low.delete()
    kept_low, objects = objects.low[0], found()  # the list is kept for some minutes
    assert kept_low not in [*objects.low, *objects.stored]


def test_what_nobody_has_viewed_is_below_usual_unless_it_is_a_draft(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    section, _ = newsroom([0, 3, 50])
    usual.article(HOURS_50, views=0, category=section, title="Draft", is_published=False)
    found = look(admin_client, "Below usual", model="site.article")
    assert titles(found) == ["0 views", "3 views"]  # before: "3 views"
    assert next((item.number, item.remark) for item in found.items) == ("0.0 ×", "0 views")
    assert [*rows(admin_client, "below", category=subject_of(section))] == ["0 views", "3 views"]
    kept.forget()
    monkeypatch.setattr(below, "MOST_ASKED", 0)
    assert titles(look(admin_client, "Below usual", model="site.article")) == ["3 views"]
    kept.forget()
    monkeypatch.setattr(below, "MOST_ASKED", 5)
    monkeypatch.setattr(Article, "is_news", lambda *_, **values: 1 / 0)
    assert titles(look(admin_client, "Below usual", model="site.article")) == ["3 views"]
    assert "the row is taken for a draft" in caplog.text
    kept.forget()
    monkeypatch.setattr(Article, "is_news", Tracked.is_news)  # each row is news
    found = look(admin_client, "Below usual", model="site.article")
    assert titles(found) == ["3 views"]  # nobody tells which of the others is a draft


def test_what_redis_alone_has_views_of_is_not_below_usual_while_it_is_silent(
    admin_client: Client, start_redis: Start
) -> None:
    valkey = start_redis()
    usual.peers(views=1_000)
    usual.article(HOURS_50, views=3, title="Low")
    flush()
    usual.renew()
    new = usual.article(timedelta(hours=2), views=0, title="New")
    counts.view(*[new] * 9)  # no flush has seen these views yet
    kept.forget()
    given = {"model": "site.article", "period": "7"}
    found = look(admin_client, "Below usual", **given)
    assert {*titles(found)} == {"Low", "New"}
    valkey.stop()
    page: Any = admin_client.get(DASHBOARD, given)
    assert page.context["next_steps"] == []
    found = next(one for one in page.context["looks"] if one.title == "Below usual")
    assert titles(found) == ["Low"]


@pytest.mark.parametrize("tab", ["below", "stories", "growth"])
def test_a_list_draws_a_line_through_each_day_of_the_period(admin_client: Client, tab: str) -> None:
    old = usual.article(timedelta(days=100), views=1)  # of the others nobody knows that they grew
    two_days_ago = buckets.hour_index(buckets.now()) - 48
    History.objects.create(subject=subject_of(old), hour=two_days_ago, views=61, visitors=61)
    newsroom([3])
    page: Any = admin_client.get(DASHBOARD, {"tab": tab, "model": "site.article", "period": "28"})
    if tab == "stories":
        lists = [page.context["list"].rows]
    else:
        lists = [one["rows"] for one in page.context["tables"]]
    cells = [cell for rows in lists for row in rows for cell in row.cells]
    lines = [cell["text"].split() for cell in cells if cell["column"].value_kind == "trend"]
    assert {*map(len, lines)} == {28}  # before: one point of what is below usual


def test_nothing_is_below_usual_and_nothing_is_usual_yet_are_told_apart(
    admin_client: Client,
) -> None:
    found = look(admin_client, "Below usual", model="site.article")
    assert found.empty == "Nothing was published in this period."  # before: the next one
    usual.article(HOURS_50, views=30)
    kept.forget()
    found = look(admin_client, "Below usual", model="site.article")
    assert found.empty.startswith("Nothing that was published in this period can be compared yet: ")
    newsroom([30])
    kept.forget()
    found = look(admin_client, "Below usual", model="site.article")
    assert found.empty == "Nothing that was published in this period is below usual."
    assert (found.more, found.file) == ("", None)


def test_what_is_published_later_or_without_a_day_is_not_compared() -> None:
    Article.objects.create(title="Without a day")
    Article.objects.create(title="Later", published_at=buckets.now() + timedelta(days=1))
    scope = Scope.parse({"model": "site.article"})
    assert below.lowest(scope, limit=5, most=5) is None


def opened(views: int, reads: int, title: str, *, earlier: int = 0) -> Article:
    """Returns an article with so many views and reads an hour ago, and with as many of both earlier."""
    article = usual.article(timedelta(days=400), views=earlier + views, title=title)
    hour = buckets.hour_index(buckets.now()) - 1
    for name, count in (("", views), ("reads:", reads)):
        subject = f"{name}{subject_of(article)}"
        History.objects.filter(subject=subject).delete()
        History.objects.create(subject=subject, hour=hour - 9_000, views=earlier, visitors=0)
        History.objects.create(subject=subject, hour=hour, views=earlier + count, visitors=0)
    return article


def test_what_is_hardly_read_is_found_though_others_have_more_views(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.numbers.objects.CANDIDATES", 2)
    monkeypatch.setattr("readtrack.numbers.loading.CANDIDATES", 2)
    for number in range(4):
        opened(9_000 + number, 6_000, f"Read {number}")
    opened(199, 0, "Too few")
    opened(400, 120, "A third")
    opened(300, 3, "Hardly")
    popular.renew(at=buckets.now(), faults=Faults())
    given = {"model": "site.article", "period": "7"}
    found = look(admin_client, "Opened, hardly read", **given)
    assert titles(found) == ["Hardly", "A third"]
    assert [item.number for item in found.items] == ["1% read", "30% read"]
    assert found.file is not None
    assert rows(admin_client, "hardly", **given) == {
        "Hardly": ["300", "3", "1%"],
        "A third": ["400", "120", "30%"],
    }


def test_what_is_hardly_read_is_found_by_the_numbers_of_the_period(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.numbers.objects.CANDIDATES", 2)
    monkeypatch.setattr("readtrack.numbers.loading.CANDIDATES", 2)
    for number in range(3):
        opened(10, 8, f"Of old {number}", earlier=5_000)
    opened(400, 120, "A third")
    opened(300, 60, "A fifth")
    popular.renew(at=buckets.now(), faults=Faults())
    today = local_time.day_of(buckets.now())
    first_day = today - timedelta(days=200)  # longer ago than any list but that of all time
    given = {"model": "site.article", "from": f"{first_day}", "to": f"{today}"}
    assert [*rows(admin_client, "hardly", **given)] == ["A fifth", "A third"]


def test_what_is_in_no_list_of_reads_may_be_read(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.numbers.objects.CANDIDATES", 2)
    monkeypatch.setattr("readtrack.numbers.loading.CANDIDATES", 2)
    monkeypatch.setattr(popular, "LISTED", 3)
    for views, reads in ((1_000, 400), (900, 380), (800, 10), (450, 440), (430, 420), (425, 415)):
        opened(views, reads, f"{reads} reads")
    popular.renew(at=buckets.now(), faults=Faults())
    assert [*rows(admin_client, "hardly", model="site.article", period="7")] == ["10 reads"]


def test_without_reads_nothing_is_hardly_read(admin_client: Client) -> None:
    opened(500, 0, "Opened")
    popular.renew(at=buckets.now(), faults=Faults())
    found = look(admin_client, "Opened, hardly read", model="site.article")
    assert (found.items, found.empty) == ([], "No text was read in this period.")
    opened(500, 400, "Read")
    popular.renew(at=buckets.now() + timedelta(hours=2), faults=Faults())
    kept.forget()
    found = look(admin_client, "Opened, hardly read", model="site.article")
    assert titles(found) == ["Opened"]


def test_where_nothing_was_opened_often_nothing_is_told_of_its_reads(admin_client: Client) -> None:
    opened(199, 190, "Read")
    popular.renew(at=buckets.now(), faults=Faults())
    found = look(admin_client, "Opened, hardly read", model="site.article")
    assert (found.items, found.empty) == ([], "No story had 200 views in this period.")
    opened(200, 190, "Read, too")
    popular.renew(at=buckets.now() + timedelta(hours=2), faults=Faults())
    kept.forget()
    found = look(admin_client, "Opened, hardly read", model="site.article")
    assert found.empty == "Of each story with that many views, more than a third was read."


def test_a_list_is_kept_for_some_minutes_and_for_its_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def find() -> kept.Found:
        asked.append("")
        return kept.Found([str(len(asked))])

    week, day = Scope.parse({"period": "7"}), Scope.parse({"period": "today"})
    assert kept.found_for("a", week, find).subjects == ["1"]
    assert kept.found_for("a", week, find).subjects == ["1"]
    assert kept.found_for("b", week, find).subjects == ["2"]
    assert kept.found_for("a", day, find).subjects == ["3"]
    monkeypatch.setattr(kept, "KEPT_FOR", -1)
    monkeypatch.setattr(kept, "MOST_KEPT", 3)
    assert kept.found_for("c", week, find).subjects == ["4"]  # there was room for three
    assert kept.found_for("c", week, find).subjects == ["5"]
