"""What a period is compared with: the period before, a week or a year earlier, or nothing."""

import json
import random
from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as zones
from django.utils.translation import override as language
from pytest_django import Settings

from readtrack import buckets
from readtrack.dashboard.navigation import TABS
from readtrack.flush.run import flush
from readtrack.numbers import local_time
from readtrack.numbers.loading import load
from readtrack.numbers.models import History
from readtrack.numbers.scope import COMPARISONS, Scope, Span
from readtrack.numbers.sql import breakdown_history, popular
from readtrack.numbers.tables import NOT_KNOWN
from readtrack.numbers.verdict import verdict_of
from readtrack.sql.faults import Faults
from readtrack.subjects import subject_of
from tests.support import counts, factories
from tests.support.costs import limits_of
from tests.support.people import add_people
from tests.support.rows import each_row
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"
FRIDAY = datetime(2026, 11, 20, 9, 30, tzinfo=timezone.utc)
LISTS_WITH_CHANGES = ("stories", "growth", "groups")
OF_THE_ADMIN = 2  # queries: the session and its user


def opened(client: Client, path: str = DASHBOARD, **given: str) -> Any:
    return client.get(path, given, follow=True)


def tables(context: Any) -> dict[str, Any]:
    return {one["table"].name: one["table"] for one in context["tables"]}


def figure(context: Any, label: str = "Views") -> Any:
    return next(figure for figure in context["figures"] if figure.label == label)


class Views:
    """A random history of some posts, and sums of it that are added up hour by hour."""

    def __init__(self, seed: int, *, days: int) -> None:
        chance = random.Random(seed)
        self.section = factories.category()
        self.posts = [
            factories.post(title=f"Post {number}", category=self.section) for number in range(4)
        ]
        self.by_hour: dict[str, Counter[int]] = {subject_of(post): Counter() for post in self.posts}
        this_hour = buckets.hour_index(buckets.now())
        # More of them where the comparisons are.
        ages = [chance.randrange(days * 24) for _ in range(300)]
        for middle in (0, 7, 14, 365):
            ages += [abs(middle * 24 + chance.randrange(-40, 40)) for _ in range(80)]
        for age in ages:
            subject = subject_of(chance.choice(self.posts))
            self.by_hour[subject][this_hour - age] += chance.randrange(1, 9)
        # The first hour of history is before all periods.
        self.by_hour[subject_of(self.posts[0])][this_hour - days * 24] += 1
        self._store()

    def _store(self) -> None:
        of_model: Counter[int] = Counter()
        for by_hour in self.by_hour.values():
            of_model.update(by_hour)
        rows = []
        for subject, by_hour in {**self.by_hour, "site.post": of_model}.items():
            absolute = 0
            for hour in sorted(by_hour):
                absolute += by_hour[hour]
                rows.append(History(subject=subject, hour=hour, views=absolute, visitors=0))
        History.objects.bulk_create(rows)
        popular.renew(at=buckets.now(), faults=Faults())

    def between(self, span: Span, subject: str = "") -> int:
        """Returns the views of the hours that begin in the period, of a subject or of all."""
        subjects = [subject] if subject else [*self.by_hour]
        return sum(
            views
            for name in subjects
            for hour, views in self.by_hour[name].items()
            if span.since <= buckets.hour_start(hour) < span.until
        )


def shifted(moment: datetime, compare: str) -> datetime:
    """Returns the local time of day a week or a year earlier."""
    naive = zones.localtime(moment).replace(tzinfo=None)
    earlier = naive - timedelta(days=7)
    if compare == "year":
        earlier = naive.replace(year=naive.year - 1)
    return zones.make_aware(earlier)


def told(views_before: int, compare: str) -> str:
    """Returns what a page says of the views so much earlier. None at all of a year ago may as well be
    older than the history.
    """
    is_known = views_before or compare == "week"
    return f"{views_before:,}" if is_known else NOT_KNOWN


@pytest.fixture
def views(afternoon: None) -> Views:
    """Returns views of more than a year, which pages only read: to store them takes seconds."""
    return Views(7, days=420)


@each_row(
    ("period", "compare"),
    [("today", "week"), ("yesterday", "week"), ("today", "year"), ("7", "year"), ("28", "year")],
)
def test_cards_chart_and_tables_have_the_numbers_of_the_period_that_is_compared(
    period: str, compare: str, views: Views, admin_client: Client
) -> None:
    page = opened(admin_client, period=period, compare=compare, model="site.post")
    scope = page.context["data"].scope
    since = shifted(scope.span.since, compare)
    until = shifted(scope.compared.until, compare)  # without today, or without the running hour
    span_before = Span(since, until)
    before = views.between(span_before)
    now = views.between(scope.span)
    assert figure(page.context).value == f"{now:,}"
    assert figure(page.context).before == told(before, compare)
    chart = page.context["chart"]
    assert sum(filter(None, chart.drawn.before)) == before
    assert chart.label_before == COMPARISONS[compare]
    for given in ({"category": f"site.category:{views.section.pk}"}, {"model": "site.post"}):
        context = opened(admin_client, period=period, compare=compare, **given).context
        assert figure(context).before == told(before, compare)
        table = tables(context)["most-viewed"]
        viewed = [name for name in views.by_hour if views.between(scope.span, name)]
        assert {row.filters["object"] for row in table.rows} == {*viewed}
        for row in table.rows:
            subject = row.filters["object"]
            assert row.values[1:3] == (
                views.between(scope.span, subject),
                views.between(span_before, subject),
            )
    post = subject_of(views.posts[1])
    context = opened(admin_client, period=period, compare=compare, object=post).context
    assert figure(context).before == told(views.between(span_before, post), compare)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"period": "today", "compare": "week"}, ("2026-11-13 00:00", "2026-11-13 10:00")),
        ({"period": "yesterday", "compare": "week"}, ("2026-11-12 00:00", "2026-11-13 00:00")),
        ({"period": "7", "compare": "week"}, ("2026-11-07 00:00", "2026-11-13 00:00")),
        ({"period": "today", "compare": "year"}, ("2025-11-20 00:00", "2025-11-20 10:00")),
        ({"period": "month", "compare": "year"}, ("2025-11-01 00:00", "2025-11-20 00:00")),
        ({"period": "year", "compare": "year"}, ("2025-01-01 00:00", "2025-11-20 00:00")),
        # No week earlier for more than seven days, and no year earlier for more than a year.
        ({"period": "28", "compare": "week"}, ("2026-09-26 00:00", "2026-10-23 00:00")),
        (
            {"from": "2024-01-01", "to": "2025-06-30", "compare": "year"},
            ("2022-07-03 00:00", "2024-01-01 00:00"),
        ),
        (
            {"from": "2024-02-29", "to": "2024-02-29", "compare": "year"},
            ("2023-02-28 00:00", "2023-03-01 00:00"),
        ),
        # A year with a day more than the year before ends where the period begins.
        (
            {"from": "2024-01-01", "to": "2024-12-31", "compare": "year"},
            ("2023-01-01 00:00", "2024-01-01 00:00"),
        ),
        # The clock was changed in between.
        (
            {"from": "2026-10-26", "to": "2026-10-26", "compare": "week"},
            ("2026-10-19 00:00", "2026-10-20 00:00"),
        ),
        ({"period": "7", "compare": "none"}, None),
        ({"period": "all", "compare": "year"}, None),
        ({"period": "today", "compare": "x"}, ("2026-11-13 00:00", "2026-11-13 10:00")),
        # Without a choice a single day has the same day a week earlier, however it is asked for.
        ({"period": "today"}, ("2026-11-13 00:00", "2026-11-13 10:00")),
        ({"period": "yesterday"}, ("2026-11-12 00:00", "2026-11-13 00:00")),
        ({"from": "2026-11-08", "to": "2026-11-08"}, ("2026-11-01 00:00", "2026-11-02 00:00")),
        ({"period": "yesterday", "compare": "before"}, ("2026-11-18 00:00", "2026-11-19 00:00")),
        ({"period": "7"}, ("2026-11-07 00:00", "2026-11-13 00:00")),
    ],
)
def test_a_comparison_has_the_same_days(
    given: dict[str, str], expected: tuple[str, str] | None
) -> None:
    with zones.override("Europe/Berlin"):
        before = Scope.parse(given, at=FRIDAY).before
        ends = before and tuple(f"{zones.localtime(end):%Y-%m-%d %H:%M}" for end in before)
        assert ends == expected


def beside(scope: Scope) -> list[tuple[str, str]]:
    """Returns the local starts of the points, and of what stands beside each of them."""
    starts = scope.span.starts(scope.by)
    pairs = []
    for start, hours in zip(starts, scope.hours_beside(), strict=True):
        before = f"{zones.localtime(buckets.hour_start(hours.start)):%y-%m-%d %H}, {len(hours)} h"
        pairs.append((f"{zones.localtime(start):%y-%m-%d %H}", before if hours else ""))
    return pairs


@pytest.mark.parametrize(
    ("zone", "now", "hours"),
    [
        ("Pacific/Noumea", "2026-11-20T00:42", 0),  # 11 hours ahead of UTC
        ("Pacific/Noumea", "2026-11-20T01:01", 1),
        ("Australia/Adelaide", "2026-11-20T00:12", 0),
        ("Australia/Adelaide", "2026-11-20T01:12", 1),
        ("Asia/Kathmandu", "2026-11-20T05:59", 5),
        ("Europe/Berlin", "2026-10-25T12:30", 12),  # the day has an hour more, and is cut at 12:00
    ],
)
def test_both_periods_are_cut_at_the_same_time_of_day(
    zone: str, now: str, hours: int, settings: Settings
) -> None:
    settings.TIME_ZONE = zone
    at = zones.make_aware(datetime.fromisoformat(now))
    for compare in ("before", "week"):
        scope = Scope.parse({"period": "today", "compare": compare}, at=at)
        assert scope.compared
        assert scope.before
        clock = f"{hours:02}:00"
        ends = [zones.localtime(one.until) for one in (scope.compared, scope.before)]
        assert [f"{end:%H:%M}" for end in ends] == [clock, clock]
        assert len(scope.before.hours) == hours
        assert scope.is_compared is (hours > 0)


def test_points_stand_beside_the_same_part_of_the_period_before() -> None:
    with zones.override("Europe/Berlin"):
        leap = Scope.parse({"from": "2024-02-28", "to": "2024-03-01", "compare": "year"}, at=FRIDAY)
        assert beside(leap) == [
            ("24-02-28 00", "23-02-28 00, 24 h"),
            ("24-02-29 00", "23-02-28 00, 24 h"),
            ("24-03-01 00", "23-03-01 00, 24 h"),
        ]
        year = Scope.parse({"period": "year", "compare": "year"}, at=FRIDAY)
        weeks = beside(year)
        assert weeks[0] == ("26-01-01 00", "25-01-02 00, 96 h")  # both up to a Sunday
        assert weeks[1] == ("26-01-05 00", "25-01-06 00, 168 h")
        # The week of the present day is compared without Friday, which is not over.
        assert weeks[-1] == ("26-11-16 00", "25-11-17 00, 96 h")
        months = Scope.parse({"period": "year", "by": "month"}, at=FRIDAY)
        assert beside(months)[1] == ("26-02-01 00", "25-02-01 00, 672 h")
        autumn = Scope.parse(
            {"from": "2026-10-25", "to": "2026-10-25", "compare": "week"}, at=FRIDAY
        )
        hours = beside(autumn)
        assert len(hours) == 25
        assert hours[1:4] == [
            ("26-10-25 01", "26-10-18 01, 1 h"),
            ("26-10-25 02", "26-10-18 02, 1 h"),
            ("26-10-25 02", "26-10-18 02, 1 h"),
        ]
        after = Scope.parse(
            {"from": "2026-04-05", "to": "2026-04-05", "compare": "week"}, at=FRIDAY
        )
        assert beside(after)[1:4] == [
            ("26-04-05 01", "26-03-29 01, 1 h"),
            ("26-04-05 02", ""),  # clocks skipped it a week earlier
            ("26-04-05 03", "26-03-29 03, 1 h"),
        ]


def test_this_year_is_compared_up_to_the_same_day_after_a_leap_day() -> None:
    ends = {}
    for now in ("2024-02-29T12:30", "2024-03-01T12:30", "2025-03-01T12:30"):
        at = datetime.fromisoformat(now).replace(tzinfo=timezone.utc)
        with zones.override("UTC"):
            before = Scope.parse({"period": "year"}, at=at).before
        assert before
        ends[now] = f"{before.until:%Y-%m-%dT%H:%M}"
    assert ends == {
        "2024-02-29T12:30": "2023-03-01T00:00",
        "2024-03-01T12:30": "2023-03-01T00:00",
        "2025-03-01T12:30": "2024-02-29T00:00",
    }


def test_only_comparisons_that_do_not_overlap_the_period_are_offered() -> None:
    for given, expected in (
        ({"period": "7"}, ["before", "week", "year", "none"]),
        ({"period": "28"}, ["before", "year", "none"]),
        ({"from": "2025-01-01", "to": "2026-01-01"}, ["before", "none"]),
        ({"period": "all"}, []),
    ):
        assert Scope.parse(given, at=FRIDAY).comparisons == expected


def test_the_address_keeps_a_comparison_over_all_links_and_files(admin_client: Client) -> None:
    Views(1, days=420)
    page = opened(admin_client, period="7", compare="year")
    context = page.context
    choices = [*context["periods"], *context["tabs"]]
    links = [choice.address for choice in choices]
    links += [figure.address for figure in context["figures"] if figure.address]
    links += [address for file in context["files"] for address in file.addresses.values()]
    links += [row.link for one in context["tables"] for row in one["rows"] if row.link]
    assert len(links) > 16
    assert all("compare=year" in link for link in links)
    assert ("compare", "year") in context["kept"]  # by the form of two days
    chosen = {choice.label: choice.address for choice in context["comparisons"]}
    assert "compare" not in chosen[COMPARISONS["before"]]
    assert "compare=none" in chosen[COMPARISONS["none"]]
    file = admin_client.get(DASHBOARD + context["files"][1].addresses["json"])
    [first, *_] = json.loads(b"".join(file.streaming_content))["rows"]  # type: ignore[attr-defined]
    assert first[2] == tables(context)["most-viewed"].rows[0].values[2]


@pytest.mark.usefixtures("views")
def test_it_is_said_what_is_compared(admin_client: Client) -> None:
    day = zones.localdate() - timedelta(days=7)
    with language("en"):
        text = opened(admin_client, period="today", compare="week").text
    words = f"{day:%b}. {day.day}, {day.year}" if day.month == 11 else str(day.year)
    assert words in text
    assert "Compared with: <b>A week earlier</b>" in text
    assert ", both up to " in text
    assert "compared once the day is over" in text
    assert ".." not in text
    assert ">A week earlier</li>" in text  # the legend
    assert "Views (A week earlier)</th>" in text


@each_row(
    ("tab", "period", "words"),
    [
        *((tab, "7", "Changes compare the 6 days that are over") for tab in LISTS_WITH_CHANGES),
        ("stories", "last-week", "Compared with "),
        ("groups", "yesterday", "Compared with "),
        ("groups", "all", ""),
        ("hardly", "7", ""),
        ("sections", "7", ""),
    ],
)
def test_a_list_says_what_its_changes_compare(
    tab: str, period: str, words: str, admin_client: Client, viewed: Views
) -> None:
    page = opened(admin_client, period=period, tab=tab)
    rule = page.context["rule"]
    assert rule.startswith(words)
    assert bool(rule) == bool(words)
    assert rule in page.text


@pytest.mark.parametrize("tab", LISTS_WITH_CHANGES)
def test_no_list_has_the_number_before_which_is_of_other_days_than_the_number_beside_it(
    tab: str, admin_client: Client, viewed: Views
) -> None:
    page = opened(admin_client, period="7", tab=tab)
    assert ">Change" in page.text
    assert ">Before<" not in page.text  # before: 110 | 100 | +1%, as today is in the first alone


def test_a_list_of_all_time_names_no_days(admin_client: Client, viewed: Views) -> None:
    page = opened(admin_client, period="all", tab="groups")
    assert (page.context["period"], page.context["span"]) == ("All time", "")  # before: today
    assert opened(admin_client, period="all").context["span"]  # the chart knows the first day


def test_compared_with_nothing_a_page_has_neither_line_nor_column_nor_growth(
    admin_client: Client,
) -> None:
    Views(3, days=420)
    page = opened(admin_client, period="7", compare="none")
    assert figure(page.context).before is None
    assert page.context["chart"].drawn.before == []
    columns = [column.name for column in tables(page.context)["most-viewed"].columns]
    assert {"before", "change"}.isdisjoint(columns)
    assert TABS["growth"] not in [choice.label for choice in page.context["tabs"]]
    # Other than in all time, the numbers are those of the period.
    compared = opened(admin_client, period="7")
    assert figure(page.context).value == figure(compared.context).value
    assert len(page.context["chart"].rows) == 7
    assert page.context["data"].objects.days == 7  # of the list that has the best


def test_where_history_does_not_go_back_so_far_nothing_is_compared(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    views = Views(4, days=60)
    # History without the random views around a year ago.
    earliest = buckets.hour_index(buckets.now()) - 60 * 24
    History.objects.filter(hour__lt=earliest).delete()
    breakdown_history.add_gains({("site.post", "views:device", "phone"): 5}, hour=earliest + 1400)
    section = f"site.category:{views.section.pk}"
    for given in ({"model": "site.post"}, {"category": section}):
        page = opened(admin_client, period="28", compare="year", **given)
        assert (figure(page.context).before, figure(page.context).change) == (NOT_KNOWN, "")
        assert "the history does not go back that far" in page.context["chart"].compared
        assert page.context["chart"].drawn.before == []
        # Before: a column of zeros.
        assert "before" not in [column.name for column in page.context["chart"].columns]
        rows = tables(page.context)["most-viewed"].rows
        assert {row.values[2:4] for row in rows} == {(None, None)}
        growth = opened(admin_client, period="28", compare="year", tab="growth", **given)
        assert tables(growth.context)["grew-most"].rows == []
    sources = opened(admin_client, period="28", compare="year", tab="sources", model="site.post")
    [row] = tables(sources.context)["by-device"].rows
    assert row.values == ("phone", 5, None, None, 100)


def test_the_days_right_before_are_no_days_of_history_either(admin_client: Client) -> None:
    views = Views(4, days=40)
    earliest = buckets.hour_index(buckets.now()) - 40 * 24
    History.objects.filter(hour__lt=earliest).delete()
    section = f"site.category:{views.section.pk}"
    flush()
    for given in ({"model": "site.post"}, {"category": section}):
        page = opened(admin_client, period="28", **given)
        assert (figure(page.context).before, figure(page.context).change) == (NOT_KNOWN, "")
        rows = tables(page.context)["most-viewed"].rows
        assert {row.values[2:4] for row in rows} == {(None, None)}
        [grown] = [look for look in page.context["looks"] if look.title == "Grew most"]
        nothing = "Nothing was counted so early, so there is nothing to compare with."
        assert (grown.items, grown.empty) == ([], nothing)
    story = opened(admin_client, f"{DASHBOARD}object/{subject_of(views.posts[0])}/", period="28")
    assert (figure(story.context).before, figure(story.context).change) == (NOT_KNOWN, "")
    assert "the history does not go back that far" in story.context["chart"].compared
    # Before a story that is new on an old site there was nothing, and that is known.
    new = factories.post(category=views.section)
    counts.view(new)
    flush()
    page = opened(admin_client, f"{DASHBOARD}object/{subject_of(new)}/", period="7")
    assert figure(page.context).before == "0"


def test_counts_from_before_history_are_no_history(admin_client: Client) -> None:
    views = Views(5, days=60)
    hour = buckets.hour_index(buckets.now()) - 60 * 24
    History.objects.filter(hour__lt=hour).delete()
    History.objects.create(subject="site.post", hour=0, views=1, visitors=0)
    assert views.posts
    page = opened(admin_client, period="7", compare="year", model="site.post")
    assert figure(page.context).before == NOT_KNOWN


def test_visitors_are_those_of_the_compared_days(admin_client: Client) -> None:
    Views(6, days=420)
    today = zones.localdate()
    for day, people in (
        (today - timedelta(days=1), ["ann", "bob", "eve"]),
        (today - timedelta(days=2), ["ann"]),
        (today - timedelta(days=8), ["ann", "zoe"]),
    ):
        add_people(["site.post"], people, day=day)
    for compare, before in (("before", "1"), ("week", "2"), ("none", None)):
        context = opened(
            admin_client, period="yesterday", compare=compare, model="site.post"
        ).context
        visitors = figure(context, "Visitors")
        assert (visitors.value, visitors.before) == ("3", before)


@pytest.fixture
def viewed(views: Views) -> Views:
    """Returns the same with a view of each post in Redis, which a flush has stored."""
    counts.view(*views.posts)
    flush()
    return views


@each_row(
    ("period", "compare", "filtered"),
    [
        ("today", "week", ""),
        ("28", "year", ""),
        ("7", "none", "category"),
        ("28", "year", "category"),
        ("today", "week", "object"),
        ("7", "year", "object"),
        ("28", "year", "object"),
        ("7", "none", "object"),
    ],
)
def test_a_comparison_costs_no_query_and_no_trip_more(
    period: str, compare: str, filtered: str, viewed: Views, admin_client: Client, wire: Wire
) -> None:
    given = {"period": period, "compare": compare, "model": "site.post"}
    if filtered == "object":
        given["object"] = subject_of(viewed.posts[0])
    if filtered == "category":
        given["category"] = f"site.category:{viewed.section.pk}"
    path = DASHBOARD
    if filtered == "object":
        path = f"{DASHBOARD}object/{given.pop('object')}/"
    admin_client.get(path, given)  # keeps the short lists for some minutes
    tabs = [""] if filtered == "object" else TABS  # the page of an object has one
    for tab in tabs:
        with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
            page = admin_client.get(path, {**given, "tab": tab})
        most_queries, most_trips = limits_of(page)
        assert trips[0] <= most_trips, tab
        assert len(queries) - OF_THE_ADMIN <= most_queries, [
            tab,
            *(query["sql"][:150] for query in queries),
        ]


def test_a_gap_of_months_is_one_point(admin_client: Client) -> None:
    Views(8, days=420)
    data = opened(admin_client, period="7", compare="year", model="site.post").context["data"]
    assert len(data.starts) == 7
    assert data.gap_index == 6  # the days that are over
    assert all(len(entry.gained.views) <= 16 for entry in data.entries)


def test_the_sentence_below_the_chart_has_the_two_numbers_that_are_compared(
    admin_client: Client,
) -> None:
    post = factories.post()
    for days_ago, views in ((30, 5), (9, 40), (8, 2), (2, 30), (0, 7)):
        hour = buckets.hour_index(buckets.now()) - 24 * days_ago
        for subject in ("site.post", subject_of(post)):
            last = History.objects.filter(subject=subject).order_by("hour").last()
            before = last.views if last else 0
            History.objects.create(subject=subject, hour=hour, views=before + views, visitors=0)
    chart = admin_client.get(DASHBOARD).context["chart"]
    assert chart.compared.endswith("Views: 30, before: 42.")  # without today's
    chart = admin_client.get(DASHBOARD, {"series": "visitors"}).context["chart"]
    assert "before:" not in chart.compared
    given = {"period": "today", "compare": "week"}
    assert ".." not in admin_client.get(DASHBOARD, given).context["chart"].compared


@pytest.mark.parametrize("tab", ["numbers", "growth"])
def test_the_menu_of_periods_and_the_links_above_it_are_compared_alike(
    admin_client: Client, tab: str
) -> None:
    def chosen(context: Any, links: str) -> dict[str, str]:
        return {str(choice.label): choice.address for choice in context[links]}

    for period, label in (("today", "Today"), ("yesterday", "Yesterday")):
        context = opened(admin_client, period="28", tab=tab).context
        address = chosen(context, "periods")[label]
        if tab == "numbers":
            assert chosen(context, "quick")[label] == address
        page = admin_client.get(DASHBOARD + address)
        scope = page.context["scope"]
        assert (scope.period, scope.comparison) == (period, "week")
        [own_tab] = [choice.label for choice in page.context["tabs"] if choice.is_chosen]
        assert own_tab == TABS[tab]
        comparisons = chosen(page.context, "comparisons")
        assert "compare" not in comparisons[str(COMPARISONS["week"])]
        assert "compare=before" in comparisons[str(COMPARISONS["before"])]


@pytest.mark.parametrize("days_ago", [3, 20])
@pytest.mark.parametrize("table", ["most-viewed", "over-time", "views-by-section"])
def test_a_day_without_views_a_week_earlier_is_known_once_history_goes_back_so_far(
    table: str, days_ago: int
) -> None:
    yesterday = local_time.first_hour_of(zones.localdate() - timedelta(days=1))
    first = yesterday - 24 * days_ago
    for subject in ("site.post", subject_of(factories.post())):
        for hour, views in ((first, 1), (yesterday + 5, 7)):
            History.objects.create(subject=subject, hour=hour, views=views, visitors=0)
    data = load(Scope.parse({"period": "yesterday", "model": "site.post"}), [table])
    assert data.is_before_known == (days_ago == 20)
    if data.chart is not None:
        verdict = verdict_of(data)
        assert verdict.views_change is None
        first_day = zones.localdate() - timedelta(days=1 + days_ago)
        assert verdict.began == (None if days_ago == 20 else first_day)


@pytest.mark.usefixtures("views")
def test_today_says_the_number_of_a_week_earlier_up_to_the_same_hour(admin_client: Client) -> None:
    page = opened(admin_client, period="today", compare="week", model="site.post")
    chart = page.context["data"].chart
    day = zones.localdate() - timedelta(days=7)
    said = " ".join(sentence.text for sentence, _ in page.context["lead"].sentences)
    assert f" today had {chart.compared.views} view" in said
    assert f"; by then {day:%A}, " in said
    assert f" had {chart.total_before.views}." in said
    below = page.context["chart"].compared
    assert "up to" in below
    assert "before:" not in below  # as the sentence has both numbers
    assert "than before" not in said
    assert "Views rose" not in said
    assert "Views fell" not in said
