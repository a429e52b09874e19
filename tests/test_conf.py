"""Settings are looked up when they are used."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from readtrack.conf import ANNOTATIONS, DEFAULTS, cached_setting, conf


def test_an_override_takes_effect_at_once_and_ends_with_it(settings: Settings) -> None:
    assert conf.WINDOW == 1800
    settings.READTRACK = {"WINDOW": 60}
    assert conf.WINDOW == 60
    settings.READTRACK = {}
    assert conf.WINDOW == 1800


@pytest.mark.parametrize("value", [None, [], "WINDOW"])
def test_nonsense_falls_back_to_the_defaults(settings: Settings, value: Any) -> None:
    settings.READTRACK = value
    assert conf.WINDOW == 1800


def test_a_site_may_leave_the_setting_out(settings: Settings) -> None:
    del settings.READTRACK
    assert conf.WINDOW == 1800


def test_another_setting_changes_nothing(settings: Settings) -> None:
    settings.READTRACK = {"WINDOW": 60}
    settings.DEBUG = True
    assert conf.WINDOW == 60


def test_every_setting_has_a_type_and_a_default(settings: Settings) -> None:
    settings.READTRACK = {}
    assert ANNOTATIONS.keys() == DEFAULTS.keys()
    own = {"TIMEOUT"}  # the tests set it for all
    assert all(
        getattr(conf, name) == default for name, default in DEFAULTS.items() if name not in own
    )
    assert timedelta(seconds=conf.WINDOW) == timedelta(minutes=30)


def test_settings_stay_few() -> None:
    assert len(ANNOTATIONS) <= 56  # before one more, ask which site needs it


def test_an_unknown_setting_is_an_error() -> None:
    with pytest.raises(AttributeError):
        _ = conf.WINDWO  # type: ignore[attr-defined]


def test_a_cached_setting_is_computed_again_once_its_settings_change(settings: Settings) -> None:
    computed = []

    @cached_setting("TIME_ZONE", maxsize=2)
    def minutes(factor: int) -> int:
        computed.append(factor)
        return factor * conf.WINDOW // 60

    assert (minutes(1), minutes(1), minutes(2)) == (30, 30, 60)
    settings.READTRACK = {"WINDOW": 60}
    assert minutes(1) == 1
    settings.TIME_ZONE = "Asia/Tokyo"
    assert minutes(1) == 1
    settings.DEBUG = True
    assert minutes(1) == 1
    assert computed == [1, 2, 1, 1]
