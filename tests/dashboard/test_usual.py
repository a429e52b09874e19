"""Whether it is doing well: multiples of the usual in tables and on an object's page."""

import csv
import json
from datetime import date, timedelta
from io import StringIO
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from readtrack import buckets, tracker
from readtrack.dashboard.navigation import TABS
from readtrack.flush.run import flush
from readtrack.numbers import local_time, objects
from readtrack.numbers import usual as dashboard_usual
from readtrack.numbers.models import History, Usual
from readtrack.numbers.sql.gained import WINDOWS
from readtrack.numbers.sql.peers import FEWEST
from readtrack.numbers.sql.usual import Band, Past
from readtrack.numbers.sql.usual_week import WeeksBefore, slot_of
from readtrack.numbers.tables import NOT_KNOWN
from readtrack.subjects import subject_of
from tests.dashboard.test_comparison import DASHBOARD, OF_THE_ADMIN
from tests.site.models import Article, Category
from tests.support import counts, factories, usual
from tests.support.costs import limits_of
from tests.support.rows import each_row
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db
HOURS_50 = timedelta(hours=50)


def newsroom() -> tuple[Category, list[Article]]:
    """Returns a section whose articles usually have 20 views, and two of them that had 46 and 30."""
    section = factories.category(name="Politics")
    usual.peers(views=20, category=section)
    articles = [
        usual.article(HOURS_50, views=views, category=section, title=f"{views} views")
        for views in (46, 30)
    ]
    flush()
    usual.renew()
    return section, articles


def old_newsroom(age: timedelta) -> tuple[Category, list[Article]]:
    """Returns the same of articles of such an age, which had ten of their views of late."""
    section = factories.category(name="Politics")
    usual.begin()
    for number in range(FEWEST):
        usual.article(age + timedelta(days=30, hours=number), views=20, category=section)
    articles = [
        usual.article(age, views=views, category=section, title=f"{views} views")
        for views in (46, 30)
    ]
    of_late = buckets.hour_index(buckets.now()) - 50
    for made in articles:
        rows = History.objects.filter(subject=subject_of(made))
        rows.update(views=made.view_count - 10)
        History.objects.create(
            subject=subject_of(made), hour=of_late, views=made.view_count, visitors=0
        )
    flush()
    usual.renew()
    return section, articles


def table(context: Any, name: str) -> Any:
    return next(one for one in context["tables"] if one["table"].name == name)


def column(context: Any, name: str) -> dict[str, str]:
    """Returns the texts of the column "× usual" by title of the object."""
    one = table(context, name)
    index = [column.name for column in one["columns"]].index("usual") - 1
    objects = [row.values[0] for row in one["table"].rows]
    texts = [row.cells[index]["text"] for row in one["rows"]]
    return dict(zip((obj.title for obj in objects), texts, strict=False))


@pytest.mark.parametrize(("tab", "name"), [("numbers", "most-viewed"), ("growth", "grew-most")])
def test_tables_say_how_many_times_the_usual_views_an_object_has(
    tab: str, name: str, admin_client: Client
) -> None:
    if name == "grew-most":  # without what was published since the days before
        _, [good, _other] = old_newsroom(timedelta(days=20))
    else:
        _, [good, _other] = newsroom()
    counts.view(*[good] * 4)
    page = admin_client.get(DASHBOARD, {"tab": tab, "model": "site.article"})
    shown = column(page.context, name)
    assert shown["46 views"] == "2.5"
    assert shown["30 views"] == "1.5"
    if name == "most-viewed":
        assert NOT_KNOWN in shown.values()  # no peers are as old as the oldest ones
    assert "<dt>× usual</dt>" in page.content.decode()  # what it means


def test_past_periods_and_sites_without_a_usual_have_no_such_column(admin_client: Client) -> None:
    newsroom()
    for given in ({"period": "yesterday"}, {"model": "site.post"}):
        page = admin_client.get(DASHBOARD, given)
        columns = table(page.context, "most-viewed")["table"].columns
        assert "usual" not in [one.name for one in columns]


@pytest.mark.parametrize(("period", "is_said"), [("yesterday", True), ("7", False)])
def test_past_periods_say_why_they_have_none(
    period: str, is_said: bool, admin_client: Client
) -> None:
    newsroom()
    page = admin_client.get(DASHBOARD, {"period": period})
    meaning = dict(page.context["definitions"])["× usual"]
    assert ("It is as of now, so lists of earlier periods do not have it." in meaning) is is_said


def file_of(client: Client, **given: str) -> str:
    """Returns the text of a file."""
    answer: Any = client.get(DASHBOARD, given)
    return b"".join(answer.streaming_content).decode("utf-8-sig")


def test_files_have_it_as_a_number(admin_client: Client) -> None:
    newsroom()
    given = {"table": "most-viewed", "model": "site.article"}
    answer = json.loads(file_of(admin_client, **given, format="json"))
    index = answer["columns"].index("usual")
    assert {row[index] for row in answer["rows"]} == {2.3, 1.5, None}
    rows = csv.DictReader(StringIO(file_of(admin_client, **given, format="csv")))
    assert {row["× usual"] for row in rows} == {"2.3", "1.5", ""}


@pytest.fixture
def good() -> Article:
    """Returns an article that has more than twice the usual views of its section."""
    _, [good, _other] = newsroom()
    return good


@each_row(
    ("language", "times", "sentence"),
    [
        ("en", "2.3", "Usual for articles in Politics after 2 days: about 20 views"),
        ("de", "2,3", "Üblich für articles in „Politics“ nach 2 Tagen: etwa 20 Aufrufe"),
        ("ar", "2,3", ""),
    ],
)
def test_the_page_of_an_object_has_a_card(
    language: str,
    times: str,
    sentence: str,
    good: Article,
    admin_client: Client,
    settings: Settings,
) -> None:
    settings.LANGUAGE_CODE = language
    page = admin_client.get(f"{DASHBOARD}object/{subject_of(good)}/")
    assert page.context["usual"].times == times
    assert page.context["place"] in page.content.decode()  # the sentence before all has the rest
    assert not sentence or page.context["usual"].sentence == sentence


def test_an_object_of_a_small_section_is_compared_with_the_model(admin_client: Client) -> None:
    newsroom()
    lonely = usual.article(timedelta(hours=5), views=30, category=factories.category(name="Chess"))
    usual.renew()
    page = admin_client.get(f"{DASHBOARD}object/{subject_of(lonely)}/", {"period": "yesterday"})
    assert page.context["usual"] == ("1.5", "Usual for articles after 5 hours: about 20 views")


def test_the_band_of_an_object_is_that_of_the_model_where_its_section_has_fewer_points(
    admin_client: Client,
) -> None:
    section, [good, _other] = newsroom()
    address = f"{DASHBOARD}object/{subject_of(good)}/"

    def drawn() -> tuple[int, str]:
        page = admin_client.get(address, {"by": "hour", "period": "published"})
        known = [band for band in page.context["chart"].drawn.usual if band is not None]
        return len(known), page.context["usual"].sentence

    of_section = drawn()
    assert of_section[0] > 48
    stored = Usual.objects.get(subject=f"gained:site.article@{subject_of(section)}")
    label, gains = json.loads(stored.bands)
    # Such as if most of its stories are so old that their views are kept by the day.
    by_day = {
        number: band for number, band in gains.items() if WINDOWS[int(number)].is_known_by_day
    }
    stored.bands = json.dumps([label, by_day])
    stored.save()
    assert drawn() == of_section  # before: no band at all


def test_without_a_usual_there_is_no_card(admin_client: Client, settings: Settings) -> None:
    _, [good, _other] = newsroom()
    post = factories.post()
    assert admin_client.get(f"{DASHBOARD}object/{subject_of(post)}/").context["usual"] is None
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"history": False}}
    assert admin_client.get(f"{DASHBOARD}object/{subject_of(good)}/").context["usual"] is None
    assert admin_client.get(DASHBOARD).context["usual"] is None


@pytest.fixture
def viewed() -> tuple[Category, list[Article]]:
    """Returns a category and articles that have views in SQL, in Redis, and in both."""
    section, articles = newsroom()
    counts.view(*articles)
    flush()  # because Redis began these counts anew
    tracker.refresh_trending()
    counts.view(*articles)
    return section, articles


@each_row(
    ("period", "chosen"),
    [
        ("7", ""),
        ("all", ""),
        ("today", "category"),
        ("all", "category"),
        ("today", "object"),
        ("7", "object"),
        ("all", "object"),
    ],
)
def test_it_costs_neither_a_query_nor_a_round_trip_too_many(
    period: str,
    chosen: str,
    viewed: tuple[Category, list[Article]],
    admin_client: Client,
    wire: Wire,
) -> None:
    section, articles = viewed
    path = DASHBOARD
    given = {"period": period, "model": "site.article"}
    if chosen == "category":
        given["category"] = subject_of(section)
    if chosen == "object":
        path = f"{DASHBOARD}object/{subject_of(articles[0])}/"
    admin_client.get(path, given)  # keeps the short lists for some minutes
    tabs = [""] if chosen == "object" else TABS  # the page of an object has one
    for tab in tabs:
        with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
            page = admin_client.get(path, {**given, "tab": tab})
        if tab in ("numbers", "growth") and not chosen:
            assert page.context["data"].usual or (period, tab) == ("all", "growth")
        most_queries, most_trips = limits_of(page)
        assert trips[0] <= most_trips
        assert len(queries) - OF_THE_ADMIN <= most_queries, [
            query["sql"][:200] for query in queries
        ]


@pytest.mark.parametrize(("period", "days"), [("today", 20), ("7", 20), ("90", 190)])
def test_what_grew_most_in_a_large_category_costs_no_query_more(
    period: str, days: int, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "MOST", 5)
    section, articles = old_newsroom(timedelta(days=days))
    counts.view(*articles)
    flush()
    given = {"category": subject_of(section), "model": "site.article", "tab": "growth"}
    given["period"] = period
    admin_client.get(DASHBOARD, given)
    with CaptureQueriesContext(connection) as queries:
        page = admin_client.get(DASHBOARD, given)
    [one] = page.context["tables"]
    assert one["rows"] or period == "today"  # the hour that goes on is compared with nothing
    # Before: 6, because the growth of all candidates was read beside that of the shown ones.
    assert len(queries) - OF_THE_ADMIN <= 5, [query["sql"][:200] for query in queries]


def test_a_deleted_row_has_none(admin_client: Client) -> None:
    _, [good, _other] = newsroom()
    Article.objects.filter(pk=good.pk)._raw_delete("default")
    page = admin_client.get(DASHBOARD, {"model": "site.article"})
    assert subject_of(good) not in page.context["data"].usual


def week(by_hour: Any, *, days: int = 70) -> None:
    """Stores a history of articles, whose views in an hour (since 1970) are `by_hour` of it."""
    present = buckets.hour_index(buckets.now())
    total = 0
    rows = []
    for hour in range(present - days * 24, present + 1):
        total += by_hour(hour)
        rows.append(History(subject="site.article", hour=hour, views=total, visitors=0))
    History.objects.bulk_create(rows)
    usual.renew()


@pytest.mark.parametrize(
    ("period", "by"), [("today", "hour"), ("yesterday", "hour"), ("7", "hour"), ("28", "day")]
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata"])
def test_behind_the_chart_is_what_the_site_has_at_that_hour_or_on_that_day(
    period: str, by: str, zone: str, admin_client: Client, settings: Settings
) -> None:
    settings.TIME_ZONE = zone
    week(lambda hour: 10 + slot_of(hour) + hour // 168 % 2)
    page = admin_client.get(DASHBOARD, {"period": period, "by": by, "model": "site.article"})
    chart, starts = page.context["data"].chart, page.context["data"].starts
    assert len(chart.usual) == len(starts)
    # Where hours begin at half past, the last hour of yesterday goes on after midnight.
    last_until = starts[-1] + (buckets.HOUR if by == "hour" else buckets.DAY)
    is_over = last_until <= buckets.now()
    whole = chart.usual if is_over else chart.usual[:-1]
    for start, band in zip(starts, whole, strict=False):
        if by == "hour":
            slots = [slot_of(buckets.hour_index(start))]
        else:
            day = local_time.day_of(start)
            first = local_time.first_hour_of(day)
            end = local_time.first_hour_of(day + buckets.DAY)
            slots = [slot_of(hour) for hour in range(first, end)]
        low = sum(10 + slot for slot in slots)
        # Days on which clocks change are among the eight of a weekday.
        assert band.low == pytest.approx(low, rel=0.08, abs=1)
        assert band.high == pytest.approx(low + len(slots), rel=0.08, abs=1)
    if not is_over:  # what is not over yet has a part
        most = max((band.high for band in whole), default=0)
        assert 0 <= chart.usual[-1].high <= most + 24 * 200
    html = page.content.decode()
    assert html.count('class="readtrack-band"') == 2  # in the wide and in the narrow drawing
    assert "The pale band behind the line is what is usual." in html
    assert 'class="readtrack-band"' in html
    bands = [[*band] if band else None for band in page.context["chart"].drawn.usual]
    assert bands[0] == [round(chart.usual[0].low), round(chart.usual[0].high)]
    columns = [str(column.heading) for column in page.context["chart"].columns]
    assert columns[-3:] == ["Usual, from", "Usual, to", "Notes"]


def test_the_part_of_today_is_what_has_usually_come_by_now() -> None:
    noon = local_time.first_hour_of(buckets.local_day(500_000)) + 12
    views_of_weeks = (99, 0, 5, 20, 10, 5, 0, 99)
    views = [views for views in views_of_weeks for _hour in range(168)]
    weeks = WeeksBefore(Past(noon - 12 - len(views), views))
    start = buckets.hour_start(noon - 12)
    end = buckets.hour_start(noon) + timedelta(minutes=30)
    part = dashboard_usual._of_weeks(weeks, start, by="day", now=end)
    assert part == pytest.approx((62.5, 125, 250))
    half = dashboard_usual._of_weeks(weeks, buckets.hour_start(noon), by="hour", now=end)
    assert half == (2.5, 5, 10)
    unknown = WeeksBefore(Past(noon, []))
    assert dashboard_usual._of_weeks(unknown, start, by="day", now=end) is None


def bands_of_days(client: Client, first_day: date, last_day: date) -> list[Band | None]:
    """Returns the band of each day of a period, as its chart has it."""
    given = {"from": first_day.isoformat(), "to": last_day.isoformat(), "by": "day"}
    page = client.get(DASHBOARD, {**given, "model": "site.article"})
    return [*page.context["data"].chart.usual]


def test_a_day_is_judged_by_the_weeks_before_it_in_whatever_period_it_is(
    admin_client: Client,
) -> None:
    today = local_time.today()
    more_since = local_time.first_hour_of(today - 40 * buckets.DAY)
    week(lambda hour: 10 if hour >= more_since else 1, days=120)
    early = today - 45 * buckets.DAY
    # All weeks before these days had few views, and all weeks since then have many.
    assert bands_of_days(admin_client, early, early + buckets.DAY) == [Band(24, 24, 24)] * 2
    last = today - buckets.DAY
    month = bands_of_days(admin_client, today - 50 * buckets.DAY, last)
    two_days = bands_of_days(admin_client, last - buckets.DAY, last)
    assert [month[5], *month[-2:]] == [Band(24, 24, 24), *two_days]
    assert month[-1] is not None
    assert month[-1].high == 240
    assert month[-1].low == 24  # of eight such days the first three are from before


def test_the_first_four_weeks_have_no_band(admin_client: Client) -> None:
    week(lambda hour: 10, days=36)
    today = local_time.today()
    # The day on which the history began is not whole, so the 35th day before today is the first.
    bands = bands_of_days(admin_client, today - 9 * buckets.DAY, today - buckets.DAY)
    assert bands == [None] * 2 + [Band(240, 240, 240)] * 7


def test_other_charts_have_no_band(admin_client: Client) -> None:
    week(lambda hour: 10)
    flush()  # adds up the reads
    model = {"model": "site.article"}
    category = {"category": subject_of(factories.category())}
    long_ago = {"from": "2001-02-03", "to": "2001-02-03"}
    for given in ({"by": "week", "period": "90"}, {"series": "reads"}, category, long_ago):
        page = admin_client.get(DASHBOARD, {**model, **given})
        assert 'class="readtrack-band"' not in page.content.decode()
        assert page.context["chart"].drawn.usual == []
    assert admin_client.get(DASHBOARD, model).context["chart"].drawn.usual


def test_behind_the_chart_of_an_object_is_what_its_peers_gained(admin_client: Client) -> None:
    _, [good, _other] = newsroom()
    page = admin_client.get(f"{DASHBOARD}object/{subject_of(good)}/")
    bands = page.context["data"].chart.usual
    # All of the peers' views came in their first hour. Half an hour is rounded.
    assert sum(band.usual for band in bands) == pytest.approx(20, abs=0.1)
    assert bands[0].usual > 0
    assert [band.usual for band in bands[3:]] == pytest.approx([0] * len(bands[3:]), abs=0.01)
    assert page.content.decode().count('class="readtrack-band"') == 2


def test_the_band_of_an_object_is_no_difference_of_totals(admin_client: Client) -> None:
    section = factories.category()
    usual.begin()
    for late in range(12):  # each has its 20 views in another hour, so that none is usual in any
        peer = usual.article(timedelta(hours=100 + late), views=20, category=section)
        [row] = History.objects.filter(subject=subject_of(peer))
        History.objects.filter(subject=row.subject).update(views=0)
        History.objects.create(subject=row.subject, hour=row.hour + 1 + late, views=20, visitors=20)
    story = usual.article(HOURS_50, views=5, category=section)
    usual.renew()
    page = admin_client.get(f"{DASHBOARD}object/{subject_of(story)}/", {"by": "hour"})
    scope, bands = page.context["data"].scope, page.context["data"].chart.usual
    assert scope.by == "hour"
    assert len(bands) >= 50
    # All of them have 20 views in the end, and three quarters of them after ten hours.
    assert {band.high for band in bands[:24]} == {0}
