"""`manage.py readtrack doctor`."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django import Settings

from demo_project.engines.valkey import Valkey
from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.models import PendingPublication
from readtrack.subjects import subject_of
from tests.conftest import Start
from tests.support.factories import hit, post

pytestmark = pytest.mark.django_db


def doctor(*options: str, **kwargs: Any) -> tuple[int, str]:
    """Returns the exit status and the output."""
    out = StringIO()
    try:
        call_command("readtrack", "doctor", *options, stdout=out, **kwargs)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture
def well(start_redis: Start, settings: Settings) -> Valkey:
    """Makes a site without faults."""
    settings.READTRACK = {"TIMEOUT": 0.25}
    valkey = start_redis(appendonly="yes")
    tracker.record(hit(subject_of(post())))
    flush()
    return valkey


def test_a_site_that_is_well_gives_status_0(well: Valkey) -> None:
    status, text = doctor()
    assert status == 0, text
    assert "drift        1 total compared with SQL, none different." in text


@pytest.fixture
def _late(well: Valkey) -> None:
    """Leaves a publication unsent."""
    PendingPublication.objects.create(
        subject="site.category:1", written=buckets.now() - timedelta(seconds=200)
    )


@pytest.mark.usefixtures("_late")
def test_a_warning_gives_status_1_and_says_what_to_do() -> None:
    status, text = doctor()
    assert status == 1
    assert "warning outbox       1 publication not sent" in text
    assert "                     Flushes send them. Run:" in text


@pytest.mark.usefixtures("_late")
def test_an_error_gives_status_2_however_many_warnings_there_are(well: Valkey) -> None:
    well.stop()
    assert doctor()[0] == 2


def test_a_cache_that_is_no_redis_is_one_finding_among_others(settings: Settings) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    status, text = doctor()
    assert status == 2
    assert "error   connection   CACHES['default'] names no Redis: " in text
    assert "warning flushes      No flush has run yet." in text


def test_json_is_for_machines(well: Valkey) -> None:
    well.stop()
    status, text = doctor("--json")
    answer = json.loads(text)
    assert answer["status"] == status == 2
    assert {"name", "level", "message", "hint"} == set(answer["findings"][0])
    assert answer["findings"][0]["name"] == "connection"


def test_verbosity_0_prints_what_is_wrong_only(
    well: Valkey, request: pytest.FixtureRequest
) -> None:
    assert doctor(verbosity=0) == (0, "")
    request.getfixturevalue("_late")
    assert len(doctor(verbosity=0)[1].splitlines()) == 2


def test_levels_are_coloured(well: Valkey) -> None:
    assert "\x1b[" in doctor(force_color=True)[1]
