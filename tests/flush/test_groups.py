"""What categories, authors and ages gained, added up from history by full flushes."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest
from django.test import override_settings

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.numbers.flush import groups
from readtrack.numbers.models import BreakdownHistory, DayVisitors, History
from readtrack.numbers.sql import (
    group_sums,
    memberships,
    model_sums,
    past_hours,
    period_gains,
    popular,
    thinning,
)
from readtrack.sql.faults import Faults
from readtrack.subjects import subject_of
from tests.site.models import Article, Page, Shelf, Topic
from tests.support import counts, factories

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"]),
    pytest.mark.usefixtures("database"),
]

LABEL = "site.article"
AT = datetime(2026, 3, 20, 10, tzinfo=timezone.utc)
END = buckets.hour_index(AT)
Rows = dict[tuple[str, int], int]  # gains by subject and hour


def renew(at: datetime = AT) -> None:
    faults = Faults()
    groups.renew(at=at, faults=faults)
    assert not str(faults)


def store_history(gained: Rows, *, label: str = LABEL) -> None:
    """Stores the absolute numbers that these gains make, of objects and of the model."""
    totals: Counter[str] = Counter()
    rows: dict[tuple[str, int], int] = {}
    for (subject, hour), number in sorted(gained.items(), key=lambda item: item[0][1]):
        totals[subject] += number
        rows[subject, hour] = totals[subject]
        totals[label] += number
        rows[label, hour] = totals[label]
    History.objects.bulk_create(
        History(subject=subject, hour=hour, views=views, visitors=0)
        for (subject, hour), views in rows.items()
    )


def gains(*spans: range, label: str = LABEL) -> list[dict[group_sums.Name, int]]:
    """Returns what the groups gained in these hours."""
    found = group_sums.gains([label], memberships.GROUPS, spans)
    return [dict(of_span[label]) for of_span in found]


def newsroom(rng: Random) -> list[Article]:
    """Returns articles of several categories, topics, authors and ages."""
    categories = [None, *(factories.category() for _ in range(3))]
    topics = [Topic.objects.create(name=name) for name in "ab"]
    authors = [None, factories.user(), factories.user()]
    articles = []
    for _ in range(12):
        published = rng.choice([None, AT - timedelta(days=rng.uniform(0, 200))])
        article = Article.objects.create(
            category=rng.choice(categories), author=rng.choice(authors), published_at=published
        )
        article.topics.set(rng.sample(topics, rng.randrange(3)))
        articles.append(article)
    return articles


def random_gains(rng: Random, articles: list[Article], *, days: int) -> Rows:
    hours = range(END - 24 * days, END + 1)
    gained: Rows = {}
    for _ in range(200):
        subject = subject_of(rng.choice(articles))
        if rng.random() < 0.3:
            subject = f"reads:{subject}"
        gained[subject, rng.choice(hours)] = rng.randrange(1, 9)
    return gained


def brute_force(gained: Rows, articles: list[Article], *spans: range) -> list[dict[Any, int]]:
    """Returns the same as `gains`, by a loop over all gains."""
    by_subject = {subject_of(article): article for article in articles}
    sections = {subject: sections_of(article) for subject, article in by_subject.items()}
    sums: list[Counter[Any]] = [Counter() for _ in spans]
    for (subject, hour), number in gained.items():
        name = "reads" if subject.startswith("reads:") else "views"
        subject = subject.removeprefix("reads:")
        article = by_subject[subject]
        groups = [("section", name, section) for section in sections[subject]]
        groups.append(("author", name, str(article.author_id or "")))
        groups.append(("age", name, age(article, hour)))
        for span, of_span in zip(spans, sums, strict=True):
            if hour in span:
                of_span.update(dict.fromkeys(groups, number))
    return [dict(of_span) for of_span in sums]


def sections_of(article: Article) -> list[str]:
    sections = [f"site.topic:{topic.pk}" for topic in article.topics.all()]
    if article.category_id:
        sections.append(f"site.category:{article.category_id}")
    return sections or [""]


def age(article: Article, hour: int) -> str:
    if article.published_at is None:
        return ""
    published = buckets.local_day(buckets.hour_index(article.published_at))
    days = (buckets.local_day(hour) - published).days
    if days >= 90:
        return "older"
    if days >= 30:
        return "90"
    if days >= 7:
        return "30"
    return "7" if days >= 1 else "1"


@pytest.mark.parametrize(
    ("seed", "zone", "days"),
    [(0, "UTC", 3), (1, "America/New_York", 40), (2, "Asia/Kolkata", 40), (3, "Asia/Kolkata", 3)],
)
def test_any_period_has_what_a_loop_over_all_gains_finds(seed: int, zone: str, days: int) -> None:
    rng = Random(seed)
    with override_settings(TIME_ZONE=zone):
        articles = newsroom(rng)
        gained = random_gains(rng, articles, days=days)
        store_history(gained)
        renew()
        spans = [range(END + 1), range(END - 30, END + 1), range(END - 12, END - 12)]
        for _ in range(20):
            ends = sorted(rng.randrange(END - 1_000, END + 2) for _ in range(2))
            spans.append(range(*ends))
        assert gains(*spans) == brute_force(gained, articles, *spans)


@pytest.mark.parametrize("rows_at_once", [1, 7, 1_000])
def test_few_rows_are_in_memory_together_and_each_view_is_added_once(
    rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(rows_at_once)
    articles = newsroom(rng)
    gained = random_gains(rng, articles, days=3)
    store_history(gained)
    sizes = []

    def of_subjects(subjects: set[str]) -> dict[str, memberships.Membership]:
        sizes.append(len(subjects))
        return real_of_subjects(subjects)

    real_of_subjects = memberships.of_subjects
    monkeypatch.setattr(groups, "ROWS_AT_ONCE", rows_at_once)
    monkeypatch.setattr(memberships, "of_subjects", of_subjects)
    renew()
    whole = range(END + 1)
    assert gains(whole) == brute_force(gained, articles, whole)
    if rows_at_once == 1:
        # Those with a view, and perhaps objects between two of them that were only read.
        assert max(sizes) <= 3
    else:
        assert max(sizes) <= rows_at_once + 1


def test_a_year_with_few_views_is_added_up_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(8)
    articles = newsroom(rng)
    gained = random_gains(rng, articles, days=365)
    store_history(gained)
    steps: list[range] = []

    def replace(label: str, sums: Any, *, hours: range, **others: Any) -> bool:
        steps.append(hours)
        return real_replace(label, sums, hours=hours, **others)

    real_replace = group_sums.replace
    monkeypatch.setattr(group_sums, "replace", replace)
    renew()
    whole = range(END + 1)
    assert gains(whole) == brute_force(gained, articles, whole)
    assert len(steps) < 40


def test_an_underscore_in_a_label_stands_for_no_other_letter() -> None:
    hour = END - 1
    History.objects.bulk_create(
        History(subject=f"{label}:1", hour=hour, views=5, visitors=0)
        for label in ("my_site.post", "mylsite.post", "reads:my_site.post", "reads:mylsite.post")
    )
    found = period_gains.subjects_of_every(1, "my_site.post", since=hour, until=END)
    assert found == ["my_site.post:1"]
    best = popular.most(["my_site.post", "reads:my_site.post"], since=hour, until=END)
    assert {subject for subject, _views in best} == {"my_site.post:1", "reads:my_site.post:1"}
    seen = model_sums._gains("my_site.post", since=hour, until=END)
    assert seen["reads:my_site.post"] == {hour: 5}


def test_it_goes_on_from_the_last_hour_and_repeats_nothing() -> None:
    rng = Random(7)
    articles = newsroom(rng)
    gained = random_gains(rng, articles, days=5)
    whole = range(END + 1)
    for until in (END - 70, END - 30, END - 29, END, END):
        so_far = {name: number for name, number in gained.items() if name[1] <= until}
        History.objects.all().delete()
        store_history(so_far)
        renew(buckets.hour_start(until))
        assert gains(whole) == brute_force(so_far, articles, whole)


def test_the_last_hours_are_added_up_once_more() -> None:
    category = factories.category()
    subject = subject_of(Article.objects.create(category=category))
    store_history({(subject, END - 1): 1, (subject, END): 5})
    renew()
    History.objects.all().delete()
    store_history({(subject, END - 2): 4, (subject, END - 1): 1, (subject, END): 9})
    renew()
    [found] = gains(range(END + 1))
    assert found["section", "views", subject_of(category)] == 14


def test_hours_that_have_not_changed_are_not_added_up_again() -> None:
    category = factories.category()
    subject = subject_of(Article.objects.create(category=category))
    store_history({(subject, END - 2): 4, (subject, END - 1): 1})
    renew()
    sums = BreakdownHistory.objects.filter(kind="section:views", hour=END - 2)
    sums.update(count=7)  # which would be 4 if it was added up again
    renew()
    renew(buckets.hour_start(END + 1))
    assert sums.get().count == 7
    for name in (subject, LABEL):
        History.objects.create(subject=name, hour=END + 1, views=9, visitors=0)
    renew(buckets.hour_start(END + 1))
    assert sums.get().count == 4
    [found] = gains(range(END + 2))
    assert found["section", "views", subject_of(category)] == 9


def _raise_an_hour(subject: str) -> None:
    History.objects.filter(subject=subject, hour=END - 1).update(views=3)


def _read_it(subject: str) -> None:
    History.objects.create(subject=f"reads:{subject}", hour=END - 1, views=1, visitors=0)


def _reset_it(subject: str) -> None:
    History.objects.filter(subject=subject, hour=END).delete()


def _visit_it(subject: str) -> None:
    DayVisitors.objects.create(subject=subject, day=AT.date(), visitors=2, sketch=b"")


def _forget_the_sums(subject: str) -> None:
    group_sums.forget([LABEL], since=END)


@pytest.mark.parametrize(
    "change", [_raise_an_hour, _read_it, _reset_it, _visit_it, _forget_the_sums]
)
def test_hours_are_added_up_again_after_a_change_of(change: Callable[[str], None]) -> None:
    subject = subject_of(Article.objects.create(category=factories.category()))
    store_history({(subject, END - 1): 2, (subject, END): 3})
    renew()
    sums = BreakdownHistory.objects.filter(kind="section:views")
    change(subject)
    sums.update(count=1000)
    renew()
    assert not sums.filter(count=1000).exists()
    assert sums.exists()


def test_the_visitors_of_a_group_are_united_though_they_come_after_the_views() -> None:
    category = factories.category()
    article = Article.objects.create(category=category)
    counts.view(article)
    flush()
    of_article = DayVisitors.objects.filter(subject=subject_of(article))
    [day_and_sketch] = of_article.values("day", "sketch")
    of_category = DayVisitors.objects.filter(
        subject=group_sums.visitors_of(LABEL, "section", subject_of(category))
    )
    # As a full flush finds it between two steps of another one.
    of_article.delete()
    of_category.delete()
    History.objects.filter(subject=subject_of(article)).update(visitors=7)
    flush()
    assert not of_category.exists()
    DayVisitors.objects.create(subject=subject_of(article), visitors=1, **day_and_sketch)
    flush()
    assert of_category.get().visitors == 1


def test_the_visitors_of_a_model_without_authors_are_not_stored_by_author() -> None:
    counts.view(factories.post(category=factories.category()))
    flush()
    names = DayVisitors.objects.filter(subject__contains=":{").values_list("subject", flat=True)
    assert [name.partition("}")[0] for name in names] == ["site.post:{section"]


@pytest.mark.parametrize("hours_late", [1, 10])
def test_a_view_that_was_stored_in_a_later_hour_is_not_passed_over(hours_late: int) -> None:
    category = factories.category()
    subject = subject_of(Article.objects.create(category=category))
    last_viewed = END - 200 + 23
    History.objects.bulk_create(
        History(subject=name, hour=hour, views=views, visitors=0)
        for name, hour, views in [
            (LABEL, END - 200, 1),
            (subject, END - 200, 1),
            (LABEL, last_viewed, 2),  # of models, history has the hour of the view
            (subject, last_viewed + hours_late, 2),  # of objects, the hour of the flush
            (LABEL, END - 100, 3),
            (subject, END - 100, 3),
        ]
    )
    renew()
    [found] = gains(range(END + 1))
    assert found["section", "views", subject_of(category)] == 3


def test_a_view_stays_with_the_category_that_its_object_had() -> None:
    first, second = factories.category(), factories.category()
    article = Article.objects.create(category=first)
    subject = subject_of(article)
    other = subject_of(Article.objects.create())
    before: Rows = {(subject, END - 30): 5, (other, END - 20): 1}
    store_history(before)
    renew()
    Article.objects.filter(pk=article.pk).update(category=second)
    History.objects.all().delete()
    store_history({**before, (subject, END): 2})
    renew()
    [found] = gains(range(END + 1))
    assert found["section", "views", subject_of(first)] == 5
    assert found["section", "views", subject_of(second)] == 2


def test_views_of_objects_that_are_gone_are_in_no_group() -> None:
    store_history({(f"{LABEL}:77", END): 5})
    renew()
    assert gains(range(END + 1)) == [{}]


def test_imported_views_of_the_past_are_added_up_again() -> None:
    category = factories.category()
    subject = subject_of(Article.objects.create(category=category))
    section = subject_of(category)
    store_history({(subject, END - 50): 5, (subject, END - 2): 1})
    renew()
    past_hours.raise_hours(
        [(subject, END - 50, 3), (subject, END - 40, 4)], {subject: 100}, first_live=END
    )
    renew()
    [found, day] = gains(range(END + 1), range(END - 45, END - 35))
    assert found["section", "views", section] == 13
    assert day["section", "views", section] == 4


def test_views_of_a_quiet_time_that_are_stored_later_are_added_up() -> None:
    category = factories.category()
    subject = subject_of(Article.objects.create(category=category))
    store_history({(subject, END - 240): 5})
    renew()
    for name in (subject, LABEL):  # within no hours of which there are marks
        History.objects.create(subject=name, hour=END - 120, views=9, visitors=0)
    renew()
    [found] = gains(range(END - 130, END + 1))
    assert found["section", "views", subject_of(category)] == 4


def test_an_import_between_reading_and_storing_is_not_overwritten() -> None:
    article = Article.objects.create(category=factories.category())
    store_history({(subject_of(article), END): 5})
    assert not group_sums.replace(
        LABEL, {("section:views", END, "x"): 1}, hours=range(END, END + 1), newest=7, marks={}
    )
    assert not BreakdownHistory.objects.exists()


def test_thinning_keeps_the_sums_of_days() -> None:
    rng = Random(3)
    articles = newsroom(rng)
    gained = random_gains(rng, articles, days=2)
    store_history(gained)
    renew()
    days = [range(END - 34, END - 10), range(END - 10, END + 14), range(END - 58, END + 14)]
    before = gains(*days)
    assert before == brute_force(gained, articles, *days)
    thinning.thin(at=AT + timedelta(days=93))
    assert gains(*days) == before
    kinds = BreakdownHistory.objects.filter(kind="author:views").values_list("hour", flat=True)
    assert len(set(kinds)) <= 3  # one row a day


def test_a_thousand_groups_have_names_and_the_others_are_added_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_sums, "MOST_GROUPS", 2)
    articles = [Article.objects.create(author=factories.user()) for _ in range(4)]
    store_history({(subject_of(row), END): number for number, row in enumerate(articles, start=1)})
    renew()
    [found] = gains(range(END + 1))
    views = {name: number for (group, _, name), number in found.items() if group == "author"}
    assert views == {str(articles[3].author_id): 4, str(articles[2].author_id): 3, "other": 3}


def test_links_by_another_field_and_long_names() -> None:
    shelf = Shelf.objects.create(code="x1")
    section = factories.category()
    page = Page.objects.create(slug="a", section=section, shelf=shelf)
    found = memberships.of_subjects([subject_of(page), "site.page:none", "nothing:1"])
    assert found == {
        subject_of(page): memberships.Membership(sections=[subject_of(section), subject_of(shelf)])
    }
    assert memberships._name("x" * 101) == memberships.OTHER
    assert memberships._name("x" * 100) != memberships.OTHER


def test_a_full_flush_adds_them_up_and_unites_the_visitors() -> None:
    category, author = factories.category(), factories.user()
    articles = [Article.objects.create(category=category, author=author) for _ in range(2)]
    lone = Article.objects.create()
    hit = factories.hit(*map(subject_of, articles))
    assert tracker.record(hit).counted
    counts.view(articles[0], lone)
    flush()
    flush()
    [found] = gains(range(buckets.hour_index(buckets.now()) + 1))
    assert found["section", "views", subject_of(category)] == 3
    assert found["section", "views", ""] == 1
    assert found["author", "views", str(author.pk)] == 3
    visitors = dict(DayVisitors.objects.values_list("subject", "visitors"))
    assert visitors[group_sums.visitors_of(LABEL, "section", subject_of(category))] == 2
    assert visitors[group_sums.visitors_of(LABEL, "author", str(author.pk))] == 2
    assert visitors[group_sums.visitors_of(LABEL, "section", "")] == 1
    counts.view(articles[1])
    flush(only_changed=True)
    assert gains(range(buckets.hour_index(buckets.now()) + 1)) == [found]
