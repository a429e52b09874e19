"""The demo's past is the same each time, and looks like that of a site."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from functools import cache

from demo_project.blog.past import DAYS, VIRAL_DAYS, Story, Visit, curves, refusals, tallied, visits
from readtrack.imports.lines import parser

NOW = datetime(2026, 6, 1, 15, tzinfo=timezone.utc)
STORIES = [Story(pk, pk % 8 + 1, NOW - timedelta(days=3 * pk)) for pk in range(120)]


@cache
def the_past() -> Sequence[Visit]:
    return [*visits(STORIES, now=NOW)]


def test_the_past_is_the_same_each_time_and_can_be_imported() -> None:
    past = the_past()
    assert past == list(visits(STORIES, now=NOW))
    parse = parser("combined", {})
    lines = [parse(str(visit).encode()) for visit in past]
    assert [line and line.at for line in lines] == [
        visit.at.replace(microsecond=0) for visit in past
    ]
    assert NOW.replace(hour=0) < past[-1].at < NOW < past[0].at + timedelta(days=DAYS + 1)


def test_the_past_has_weekends_a_story_that_went_viral_and_no_repeats() -> None:
    past = the_past()
    days = Counter(visit.at.date() for visit in past)
    [viral, *ordinary] = sorted(days.values(), reverse=True)
    assert viral > VIRAL_DAYS[0] > 5 * ordinary[len(VIRAL_DAYS)]
    calm = {day: count for day, count in days.items() if count < VIRAL_DAYS[2]}
    weekends = [count for day, count in calm.items() if day.weekday() > 4]
    assert sum(weekends) / len(weekends) < sum(calm.values()) / len(calm)
    assert all(visit.at >= visit.story.published for visit in past)
    assert len({(visit.at.date(), visit.address, visit.agent) for visit in past}) == len(past)


def test_breakdowns_and_funnels_of_the_past_add_up_to_its_views() -> None:
    past = the_past()
    sums: Counter[str] = Counter()
    for (_story, _hour, kind, field), count in tallied(past).items():
        sums[kind if kind != "funnel" else field] += count
    people = sum(not visit.is_robot for visit in past)
    assert {sums[name] for name in ("views:device", "views:referrer", "views:country", "view")} == {
        people
    }
    assert people > sums["click"] > sums["convert"] > 0


def test_some_visitors_read_to_the_end_and_stories_differ_in_that() -> None:
    past = [visit for visit in the_past() if not visit.is_robot]
    views, reads = (
        Counter(visit.story for visit in some)
        for some in (past, filter(lambda one: one.is_read, past))
    )
    ratios = [reads[story] / count for story, count in views.items() if count > 50]
    assert 0.05 < min(ratios) < 0.3 < 0.5 < max(ratios) < 0.8
    sums: Counter[str] = Counter()
    for (_story, _hour, kind, field), count in tallied(past).items():
        sums[field] += count if kind == "reading" else 0
    assert sums["engaged"] > sums["8"] > sums["18"] > sums["read"] == reads.total() > sums["60"] > 0


def test_counts_by_the_hour_only_rise_and_end_with_all_visits() -> None:
    past = the_past()
    people = [visit for visit in past if not visit.is_robot]
    drawn = curves(past)
    for curve in drawn.values():
        assert list(curve.visits.values()) == sorted(curve.visits.values())
        assert list(curve.reads.values()) == sorted(curve.reads.values())
        assert curve.reads.keys() <= curve.visits.keys()
    ends = [[*curve.visits.values()][-1] for curve in drawn.values()]
    assert sum(views for views, _ in ends) == len(people)
    assert sum(visitors for _, visitors in ends) == len(
        {(one.story, one.address, one.agent) for one in people}
    )
    assert sum(max(curve.reads.values(), default=0) for curve in drawn.values()) == sum(
        one.is_read for one in people
    )


def test_robots_and_repeats_of_two_days_are_refused() -> None:
    found = list(refusals(NOW))
    assert found == list(refusals(NOW))
    yesterday = Counter(
        reason for reason, at in found if at.date() == NOW.date() - timedelta(days=1)
    )
    assert set(yesterday) == {"bot", "agent", "repeat", "honeypot", "prefetch", "embed", "rate"}
    assert yesterday.most_common(1)[0][0] == "bot"
    assert all(NOW - timedelta(hours=47) <= at <= NOW for _, at in found)
