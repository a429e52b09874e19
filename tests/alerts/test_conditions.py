"""What is unusual, by numbers alone."""

from collections.abc import Sequence
from typing import Any

import pytest

from readtrack import buckets
from readtrack.alerts import conditions
from readtrack.alerts.conditions import Site
from readtrack.numbers import usual_now
from readtrack.numbers.sql.gained import WINDOWS
from readtrack.numbers.sql.usual import Band, Bands
from readtrack.numbers.sql.usual_week import slot_of
from readtrack.numbers.usual_now import MINUTES, DayBefore, Excess, Kind, Story


def story(*, before: Sequence[int] | int, now: int, **values: Any) -> Story:
    """Returns a story with so many views in each minute before the last three, and in these."""
    earlier = [before] * (MINUTES - 3) if isinstance(before, int) else [*before]
    return Story([*earlier, now, now, now], running=1.0, **values)


def excess(story: Story) -> Excess | None:
    return conditions.excess_of(story, times=5, least=30)


def test_a_story_at_five_times_what_it_had_is_told() -> None:
    found = excess(story(before=20, now=101))
    assert found is not None
    assert (found.views, found.minutes) == (303, 3)
    assert found.usual == pytest.approx(60, rel=0.03)


@pytest.mark.parametrize(("before", "now"), [(100, 400), (20, 80), (4, 9), (0, 9), (20, 20)])
def test_a_story_below_it_or_with_few_views_is_not(before: int, now: int) -> None:
    assert excess(story(before=before, now=now)) is None


def test_what_its_kind_has_at_this_age_is_usual_too() -> None:
    assert excess(story(before=20, now=101, kind=30.0)) is None
    assert excess(story(before=20, now=160, kind=30.0)) is not None


def test_few_views_are_compared_for_half_an_hour() -> None:
    slow = Story([0] * 20 + [0, 1, 0] * 4 + [2] * 28, running=1.0)
    found = excess(slow)
    assert found is not None
    assert (found.views, found.minutes) == (56 + 1, 30) or found.minutes == 30


def test_a_rise_over_hours_is_told_by_the_day_before() -> None:
    assert excess(story(before=90, now=101, day=10.0)) is not None
    assert excess(story(before=90, now=101, day=13.0)) is None


def test_a_morning_is_no_spike() -> None:
    """Where the site has five times its views, a story has them as well."""
    levels = [0.2] * 57 + [1.0] * 3
    assert excess(story(before=20, now=101, levels=levels)) is None


def test_a_story_that_its_kind_forgets_is_told_by_less() -> None:
    assert excess(story(before=20, now=80)) is None
    assert excess(story(before=20, now=80, fading=0.75)) is not None


def test_a_new_story_is_compared_with_a_whole_first_hour() -> None:
    assert excess(story(before=0, now=160, first_hour=100.0)) is None
    assert excess(story(before=0, now=170, first_hour=100.0)) == Excess(510, 100.0, 60)


def test_an_alert_is_over_at_half_of_what_began_it() -> None:
    def is_over(story: Story) -> bool:
        return conditions.is_story_over(story, minutes=3, times=5, least=30)

    def lasting(now: int) -> Story:
        return Story([20] * (MINUTES - 5) + [now] * 5, running=1.0)

    assert not is_over(lasting(101))
    assert not is_over(lasting(55))
    assert is_over(lasting(50))


def gains_of(views_by_hour: dict[int, int]) -> Bands:
    """Returns the bands of the windows of these hours since the publication."""
    bands = {}
    for number, window in enumerate(WINDOWS):
        if window.length == 1 and window.since in views_by_hour:
            bands[number] = Band(0, views_by_hour[window.since], 0)
    return bands


def test_what_is_usual_in_a_minute_is_what_peers_gain_at_that_age() -> None:
    gains = gains_of({0: 60, 1: 120, 2: 0, 3: 0})
    assert usual_now.usual_in_minute(gains, 0.2) == 1
    assert usual_now.usual_in_minute(gains, 1) == 1.5
    assert usual_now.usual_in_minute(gains, 1.5) == 2
    assert usual_now.usual_in_minute(gains, 3) == 0
    assert usual_now.usual_in_minute(gains, 7) == 0  # not known
    assert usual_now.usual_in_minute({}, 1) == 0


def test_levels_are_shares_of_a_usual_hour() -> None:
    week = {slot: Band(0, 100, 0) for slot in range(168)}
    week[0] = Band(0, 0, 0)
    week[1] = Band(0, 200, 0)
    levels = usual_now.levels_of({**week, 170: Band(0, 9999, 0)})
    assert levels[1] == pytest.approx(2)
    assert levels[0] == usual_now.LOWEST_LEVEL
    assert 170 not in levels
    assert usual_now.levels_of({0: Band(0, 0, 0)}) == {}


def shortfall(*views: int, usual: float = 1200, before: float = 0, running: float = 0.5) -> Any:
    site = Site(views=views, usual=[before or usual, before or usual, usual], running=running)
    return conditions.shortfall_of(site, divisor=3)


def test_the_site_at_a_third_of_its_usual_is_told() -> None:
    assert shortfall(1200, 1200, 200) == (200, 600.0, 30)
    assert shortfall(1200, 500, 200) is not None  # it fell in the hour before
    assert shortfall(1200, 1200, 201) is None


def test_a_holiday_is_no_fall_because_it_comes_gradually() -> None:
    assert shortfall(500, 450, 190) is None


def test_a_fall_by_half_that_may_be_chance_is_none() -> None:
    assert shortfall(460, 460, 90) is not None
    assert shortfall(460, 460, 99) is None


def test_the_evening_of_a_holiday_is_no_fall() -> None:
    assert shortfall(1440, 1440, 200, before=3600) is None
    assert shortfall(1440, 1440, 200, before=1200) is not None


def test_the_begin_of_an_hour_and_a_quiet_night_say_nothing() -> None:
    assert shortfall(1200, 1200, 0, running=0.3) is None
    assert shortfall(180, 180, 0, usual=190) is None
    assert shortfall(180, 180, 0, usual=0) is None


def test_the_site_is_back_at_half_of_its_usual() -> None:
    def is_back(views: int, *, running: float = 0.5) -> bool:
        site = Site(views=(1200, 100, views), usual=(1200, 1200, 1200), running=running)
        return conditions.is_site_back(site, divisor=3)

    assert is_back(300)
    assert not is_back(299)
    assert not is_back(300, running=0.1)


def test_the_level_of_the_site_falls_within_half_an_hour_and_rises_at_once() -> None:
    at = buckets.hour_start(1000)
    slots = {"before": slot_of(999), "now": slot_of(1000)}

    def levels(*, before: float, now: float, minute: int) -> Sequence[float]:
        known = {slots["before"]: before, slots["now"]: now}
        moment = at + minute * buckets.MINUTE
        nothing = DayBefore(0, [])
        return usual_now.story_of(
            [], Kind(), levels=known, day_before=nothing, published=None, at=moment
        ).levels

    falling = levels(before=2.0, now=1.0, minute=40)
    assert len(falling) == MINUTES
    assert [*falling[:19]] == [2.0] * 19
    assert [*falling[19:22]] == pytest.approx([1.5, 1.483, 1.467], abs=0.001)
    assert [*falling[-11:]] == [1.0] * 11
    assert levels(before=1.0, now=2.0, minute=0)[59] == 2.0
