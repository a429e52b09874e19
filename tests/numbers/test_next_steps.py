"""What to do next: lines from rules that can be read, three at most, off by a setting."""

import inspect
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import translation
from pytest_django import Settings

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.numbers import local_time
from readtrack.numbers import next_steps as rules
from readtrack.numbers.changes import MINUS
from readtrack.numbers.flush.groups import renew
from readtrack.numbers.loading import load
from readtrack.numbers.models import BreakdownHistory, History
from readtrack.numbers.next_steps import LEAST_VIEWS, next_steps
from readtrack.numbers.scope import Scope
from readtrack.numbers.words import LONGEST_TITLE, Sentence
from readtrack.sql.faults import Faults
from readtrack.subjects import subject_of
from tests.site.models import Article, Category, Page, Post
from tests.support import factories, usual
from tests.test_locale import of_code

pytestmark = pytest.mark.django_db
DASHBOARD = "/admin/readtrack/dashboard/"
DAY = buckets.DAY


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


def lines(*more: str) -> dict[str, str]:
    flush()
    data = load(
        Scope.parse({"period": "7", "model": "site.article"}),
        ["over-time", "most-viewed", "by-campaign", *more],
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
        "losing": f"Rework its beginning, of 500 views only 10% became reads: {lost}.",
        "campaign": "Find readers elsewhere, too, as 64% of these views come from one campaign:"
        " spring.",
        "old": f"Refresh its links, it is still read after 312 days: {old}, 400 views.",
    }
    settings.READTRACK = {"NUMBERS": {"advice": False}}
    assert lines() == {}


def test_the_words_for_days_agree_with_the_days() -> None:
    viewed(412, age=303, reads=200)
    with translation.override("ar"):
        assert "303 أيام" in lines()["old"]


def test_where_no_rule_holds_there_is_no_line() -> None:
    viewed(400, age=299, reads=100)
    assert lines() == {}


def test_all_old_stories_are_counted_and_the_most_viewed_is_named() -> None:
    viewed(400, age=367)
    viewed(199, age=900)  # too few views
    first = viewed(500, age=361)
    assert lines() == {
        "old": "Refresh the links of 2 stories that are older than 300 days and still read, first of"
        f" {first}, 500 views."
    }


def test_a_new_story_far_below_usual_is_named_with_both_numbers() -> None:
    usual.peers(views=1_000)
    usual.article(timedelta(hours=50), views=330, title="Better")
    low = usual.article(timedelta(hours=50), views=300, title="Low")
    usual.article(timedelta(hours=50), views=700, title="Not far below")
    flush()
    usual.renew()
    said = lines("below-usual")["below"]
    assert said == (
        f"Show it once more, it has 300 views, where about 1,000 are usual at its age: {low}."
    )


def section_that_loses(**values: Any) -> Category:
    """Returns a section that lost half of its views, among others. `values` are those of articles."""
    usual.begin()
    sections = [factories.category(name=name) for name in ("Technology", "Money", "Arts", "New")]
    # The views of the week before, and of this one.
    numbers = [(1_000, 500), (9_000, 9_000), (300, 100), (10, 0)]
    of_all = Counter[int]()
    for section, counts in zip(sections, numbers, strict=True):
        made = Article.objects.create(category=section, **values)
        views = 0
        for age, count in zip((9, 2), counts, strict=True):
            hour = local_time.first_hour_of(local_time.today() - age * DAY) + 9
            views += count
            of_all[hour] += views
            History.objects.create(subject=subject_of(made), hour=hour, views=views, visitors=0)
    for hour, views in of_all.items():
        History.objects.create(subject="site.article", hour=hour, views=1 + views, visitors=0)
    renew(at=buckets.now(), faults=Faults())
    return sections[0]


def test_a_section_that_loses_more_than_all_views_is_named_and_linked(admin_client: Client) -> None:
    section = section_that_loses()
    page: Any = admin_client.get(DASHBOARD, {"period": "7"})
    [(sentence, link)] = [
        (sentence, link)
        for sentence, link in page.context["next_steps"]
        if sentence.title == "Technology"
    ]
    assert (
        sentence.text
        == f"Look at Technology: its views changed by {MINUS}50%, all views by {MINUS}7%."
    )
    assert f"category=site.category%3A{section.pk}" in link
    assert link in page.text.replace("&amp;", "&")
    page = admin_client.get(DASHBOARD, {"period": "7", "model": "site.article"})
    assert f"by {MINUS}50%, these views together by {MINUS}7%." in page.text


def test_the_overview_has_them(admin_client: Client) -> None:
    viewed(400, age=400)
    flush()
    assert "still read after 400 days" in admin_client.get(DASHBOARD, {"period": "7"}).text


def test_the_report_of_an_author_names_no_section_because_it_has_no_page_of_one() -> None:
    author = factories.user(is_staff=True)
    section_that_loses(author=author)
    flush()
    page: Any = factories.browser(author).get(f"{DASHBOARD}author/", {"period": "7"})
    assert "Technology" in page.text
    assert "category=" not in page.text
    assert [sentence.text for sentence, _ in page.context["next_steps"]] == []
    assert "category" not in [field.name for field in page.context["fields"]]


def test_a_line_that_leads_nowhere_keeps_its_title() -> None:
    lines_shown = [(Sentence("Look at ", "The bridge", "."), "")]
    page = render_to_string("admin/readtrack/next_steps.html", {"next_steps": lines_shown})
    assert "Look at <bdi>The bridge</bdi>." in page


def test_all_other_campaigns_together_are_no_campaign() -> None:
    viewed(400, age=10)
    hour = local_time.first_hour_of(local_time.today() - buckets.DAY) + 9
    for campaign, count in (("other", 390), ("spring", 10)):
        BreakdownHistory.objects.create(
            subject="site.article", kind="views:campaign", hour=hour, field=campaign, count=count
        )
    assert lines() == {}


def test_long_titles_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "x" * (LONGEST_TITLE + 1)
    monkeypatch.setattr(Article, "__str__", lambda _: long)
    viewed(400, age=400)
    assert f": {long[:LONGEST_TITLE]}…, 400 views." in lines()["old"]


def test_only_loaded_rows_of_a_category_are_looked_at_and_none_behind_three_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    section = factories.category()
    hour = local_time.first_hour_of(local_time.today() - buckets.DAY) + 9
    old = buckets.now() - 400 * DAY
    for number in range(45):
        for made in (
            Article(category=section, published_at=old),
            Post(category=section),
            Page(section=section, slug=f"{number}"),
        ):
            made.view_count = LEAST_VIEWS
            made.save()
            subject = subject_of(made)
            History.objects.create(subject=subject, hour=hour, views=LEAST_VIEWS, visitors=0)
    flush()
    scope = Scope.parse({"period": "7", "category": subject_of(section)})
    data = load(scope, ["over-time", "most-viewed"], row_limit=10)
    assert len(data.entries) == 135
    [first, second] = [
        entry.subject for entry in data.entries if entry.subject.startswith("site.article")
    ][:2]
    data.objects.load([first, second])
    with CaptureQueriesContext(connection) as queries:
        [step] = next_steps(data)
    assert (step.rule, step.sentence.subject, len(queries)) == ("old", first, 0)
    # There are more old stories than those two, so their number is not told.
    assert step.sentence.text.startswith("Refresh its links, it is still read after 400 days")
    monkeypatch.setattr("readtrack.numbers.next_steps.MOST_LINES", 0)
    monkeypatch.setattr("readtrack.numbers.next_steps.published_at", lambda _: 1 / 0)
    assert next_steps(data) == []


def test_each_line_begins_with_what_to_do_and_has_a_number() -> None:
    """The verbs are those of the English texts; each line has the number that it goes by."""
    verbs = {"Keep", "Show", "Look", "Rework", "Find", "Refresh"}
    texts = [text for _context, text in of_code(inspect.getsource(rules))]
    numbers = ("count", "share", "change", "days")
    assert {text.split()[0] for text in texts} == verbs
    for text in texts:
        assert any(f"%({number})s" in text for number in numbers), text
