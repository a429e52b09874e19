"""The demo's past is the same each time, looks like that of a site, and has the scale of its traffic."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from functools import cache
from random import Random

import pytest

from demo_project.blog import bulk
from demo_project.blog.past import (
    COMPARED,
    DAYS,
    LINKED_FROM,
    VIRAL_VIEWS,
    Gain,
    Story,
    breakdowns,
    by_hour,
    gains,
    reading,
    refusals,
    visitors_by_block,
)
from demo_project.traffic.__main__ import _options
from readtrack import buckets
from readtrack.numbers.causes import Difference, cause_of
from readtrack.numbers.models import BreakdownHistory, DayVisitors

NOW = datetime(2026, 6, 1, 15, 30, tzinfo=timezone.utc)
STORIES = [Story(pk, pk % 8 + 1, NOW - timedelta(days=3 * pk)) for pk in range(120)]
#: Views that come of a page that a simulated visitor opens, as measured in 24 minutes of the demo:
#: other pages are front pages, sections and posts that the visitor has viewed before.
VIEWS_OF_A_PAGE = 0.4


@cache
def the_past() -> Sequence[Gain]:
    return [*gains(STORIES, now=NOW)]


def views_by_day() -> Counter[int]:
    """Returns the views of the past by day (since 1970)."""
    days = Counter[int]()
    for gain in the_past():
        days[gain.hour // 24] += gain.views
    return days


def test_the_past_is_the_same_each_time_and_ends_now() -> None:
    past = the_past()
    assert past == list(gains(STORIES, now=NOW))
    hours = [gain.hour for gain in past]
    assert max(hours) == buckets.hour_index(NOW)
    assert max(hours) - min(hours) > 24 * (DAYS - 10)
    for gain in past:
        assert gain.views >= gain.visitors >= 0
        assert gain.views >= gain.engaged >= gain.reads >= 0
        assert gain.hour >= buckets.hour_index(gain.story.published)


def test_an_hour_of_the_past_has_as_many_views_as_the_simulated_visitors_make() -> None:
    last_week = [gain.views for gain in the_past() if gain.hour >= buckets.hour_index(NOW) - 168]
    views_of_traffic = 3600 * _options([]).rate * VIEWS_OF_A_PAGE
    assert views_of_traffic / 2 < sum(last_week) / 168 < views_of_traffic * 2


def test_the_past_has_weekends_and_a_story_that_went_viral() -> None:
    days = views_by_day()
    [viral, *ordinary] = sorted(days.values(), reverse=True)
    assert viral > VIRAL_VIEWS[0] > 2 * ordinary[len(VIRAL_VIEWS)]
    last_weeks = [days[day] for day in sorted(days)[-29:-1]]  # the last day is not over
    monday = len(last_weeks) - NOW.weekday() - 28  # the last day is a Sunday at the latest
    by_weekday = [sum(last_weeks[monday + weekday :: 7]) for weekday in range(7)]
    assert max(by_weekday[5:]) < min(by_weekday[:5])


def test_old_days_have_one_row_and_the_last_ones_and_a_storys_first_ones_one_for_each_hour() -> (
    None
):
    old_story = STORIES[60]
    hours = [gain.hour for gain in the_past() if gain.story == old_story]
    published = buckets.hour_index(old_story.published)
    assert len([hour for hour in hours if hour < published + 7 * 24]) > 120
    in_between = range(published + 8 * 24, buckets.hour_index(NOW) - 96)
    days_in_between = {hour // 24 for hour in hours if hour in in_between and hour % 24 != 23}
    assert days_in_between == {buckets.hour_index(NOW) // 24 - days_ago for days_ago in COMPARED}
    assert len([hour for hour in hours if hour > buckets.hour_index(NOW) - 48]) > 20
    assert len(the_past()) < 60_000  # or the demo would take long to start


def test_all_stories_together_have_the_views_of_each_hour_of_the_last_weeks() -> None:
    numbers = by_hour(the_past(), now=NOW)
    hours = range(buckets.hour_index(NOW) - 50 * 24, buckets.hour_index(NOW))
    assert all(numbers[hour]["views"] > numbers[hour]["reads"] > 0 for hour in hours)
    for name in ("views", "visitors", "reads"):
        whole = sum(getattr(gain, name) for gain in the_past())
        assert sum(by_name[name] for by_name in numbers.values()) == whole


def test_breakdowns_and_funnels_of_the_past_add_up_to_its_views() -> None:
    fields = breakdowns(the_past(), Random(1))
    views = sum(gain.views for gain in the_past())
    sums = Counter[str]()
    for (kind, field), count in fields.items():
        sums[kind if kind != "funnel" else field] += count
    assert sums["views:device"] == sums["views:referrer"] == sums["views:country"] == views
    assert views == sums["view"] > sums["click"] > sums["convert"] > 0
    assert sums["views:channel"] == views
    newsletter = fields["views:referrer", "newsletter.example"]
    assert newsletter == fields["views:channel", "mail"] == sums["views:campaign"] > 1000


def test_stories_differ_in_their_sources() -> None:
    shares = []
    for story in STORIES[1:40]:
        gains_of_story = [gain for gain in the_past() if gain.story == story]
        fields = breakdowns(gains_of_story, Random(1))
        views = sum(gain.views for gain in gains_of_story)
        shares.append(fields["views:referrer", "www.google.com"] / views)
    assert min(shares) < 0.15
    assert max(shares) > 0.4


def values_of(story: Story, days_ago: range) -> dict[str, Counter[str]]:
    """Returns the views of a story on these days, by dimension and value."""
    first, last = (buckets.hour_index(NOW - timedelta(days=days)) // 24 for days in days_ago[::5])
    hours = range(24 * last, 24 * (first + 1))
    some = [gain for gain in the_past() if gain.story == story and gain.hour in hours]
    values: dict[str, Counter[str]] = {}
    for (kind, field), count in breakdowns(some, Random(1)).items():
        values.setdefault(kind.removeprefix("views:"), Counter())[field] = count
    return values


def test_one_story_grew_by_one_source_and_another_by_all() -> None:
    grown: list[tuple[str, str]] = []
    for story in (STORIES[len(STORIES) * 2 // 5], STORIES[len(STORIES) * 3 // 5]):
        now, before = values_of(story, range(1, 7)), values_of(story, range(8, 14))
        views = [values["country"].total() for values in (now, before)]
        cause = cause_of(Difference(views[0], views[1], now, before))
        assert cause is not None
        grown.append((cause.kind, cause.parts[0].value))
    assert grown[0] in {("new", LINKED_FROM), ("beyond", LINKED_FROM)}  # the others may have fallen
    assert grown[1][0] == "alike"


def test_the_visitors_of_a_story_are_those_since_its_publication() -> None:
    blocks = visitors_by_block(the_past(), now=NOW)
    assert sum(blocks.values()) == sum(gain.visitors for gain in the_past())
    assert any(length > 1 for _story, _day, length in blocks)
    days: defaultdict[Story, list[date]] = defaultdict(list)
    for story, first, length in blocks:
        assert first >= story.published.date()
        days[story] += [first + timedelta(days=number) for number in range(length)]
    for days_of_story in days.values():
        assert len(days_of_story) == len(set(days_of_story))


def test_some_visitors_read_to_the_end_and_stories_differ_in_that() -> None:
    engaged, reads = Counter[Story](), Counter[Story]()
    for gain in the_past():
        engaged[gain.story] += gain.engaged
        reads[gain.story] += gain.reads
    shares = [reads[story] / engaged[story] for story in engaged]
    assert 0.1 < min(shares) < 0.3 < 0.6 < max(shares) < 0.8
    story = STORIES[60]
    fields = reading(story, seen=engaged[story], engaged=engaged[story], reads=reads[story])
    assert fields["engaged"] > fields["8"] > fields["18"] > fields["reads"] > fields["60"] > 0


def test_robots_and_repeats_of_two_days_are_refused() -> None:
    found = list(refusals(NOW))
    assert found == list(refusals(NOW))
    yesterday = Counter(
        reason for reason, at, _ in found if at.date() == NOW.date() - timedelta(days=1)
    )
    assert set(yesterday) == {"bot", "agent", "repeat", "honeypot", "prefetch", "embed", "rate"}
    assert yesterday.most_common(1)[0][0] == "bot"
    assert all(NOW - timedelta(hours=47) <= at <= NOW for _, at, _ in found)
    numbers = [number for reason, _, number in found if reason == "bot"]
    assert sum(numbers) > 2_000
    assert len(set(numbers)) > 30


@pytest.mark.django_db(databases=["default", "lite"])
@pytest.mark.usefixtures("database")
def test_rows_in_bulk_are_stored_as_they_are_given() -> None:
    fields: tuple[str, ...] = ("subject", "day", "length", "visitors", "sketch", "part_of")
    days = [("a.b:1", NOW.date(), 1, 5, bytes(range(256)), 0), ("a.b:2", NOW.date(), 4, 6, b"", 16)]
    bulk.insert(DayVisitors, fields, days)
    stored = DayVisitors.objects.order_by("subject").values_list(*fields)
    assert [(*row[:4], bytes(row[4]), row[5]) for row in stored] == days
    names = ["", "\\N", "\\.", "tab\there", "line\nbreak\r", "back\\slash", "'quoted\"", "ü 日本"]
    fields = ("subject", "kind", "hour", "field", "count")
    hours = [("a.b", "views:referrer", 7, name, 2**40) for name in names]
    bulk.insert(BreakdownHistory, fields, hours)
    bulk.insert(BreakdownHistory, fields, [])
    assert sorted(BreakdownHistory.objects.values_list(*fields)) == sorted(hours)
