"""Sites with USE_TZ = False: moments are the right ones, in either database and through the change of the clock."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django import Settings

from readtrack import buckets, reports, tracker
from readtrack.flush.run import flush
from readtrack.models import FlushRun, Import
from readtrack.reports import site
from tests import factories
from tests.imports import weblogs

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"]),
    pytest.mark.usefixtures("database"),
]

# In Berlin this moment and the one an hour later read alike, 02:30.
FIRST, SECOND = (datetime(2026, 10, 25, hour, 30, 0, 5, tzinfo=timezone.utc) for hour in (0, 1))


@pytest.fixture(params=[False, True], ids=["naive", "aware"])
def _zone(request: pytest.FixtureRequest, settings: Settings) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    settings.USE_TZ = request.param


@pytest.mark.usefixtures("_zone")
@pytest.mark.parametrize("at", [FIRST, SECOND, datetime(2026, 3, 29, 1, 30, tzinfo=timezone.utc)], ids=str)
def test_a_moment_comes_back_as_it_went(at: datetime) -> None:
    FlushRun.objects.create(started=at)
    assert FlushRun.objects.get().started == at
    assert FlushRun.objects.get().started.tzinfo
    assert FlushRun.objects.filter(started__gt=at - timedelta(microseconds=1), started__lte=at).count() == 1
    assert FlushRun.objects.get().took is None


@pytest.mark.usefixtures("_zone")
def test_the_hour_that_comes_twice_is_in_order() -> None:
    FlushRun.objects.create(started=SECOND, ended=SECOND)
    FlushRun.objects.create(started=FIRST, ended=FIRST + timedelta(seconds=2))
    last = FlushRun.objects.first()
    assert last
    assert last.started == SECOND
    assert site.is_late(last, at=SECOND + timedelta(hours=1))
    assert not site.is_late(last, at=SECOND)


def test_what_one_kind_of_site_stored_the_other_reads(settings: Settings) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    settings.USE_TZ = False
    FlushRun.objects.create(started=SECOND)
    settings.USE_TZ = True
    assert FlushRun.objects.get().started == SECOND


@pytest.mark.usefixtures("_zone")
def test_a_site_flushes_and_shows_what_it_did(admin_client: Any) -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    run = flush()
    assert flush(only_changed=True).kind == run.Kind.CHANGED
    post.refresh_from_db()
    assert post.view_count == 1
    with pytest.raises(SystemExit, match="1"):  # warnings: a Redis for tests keeps nothing
        call_command("readtrack", "doctor")
    assert "Last flush" in admin_client.get("/admin/readtrack/dashboard/").content.decode()
    assert run.started.strftime("%Y") in admin_client.get("/admin/readtrack/flushrun/").content.decode()


@pytest.mark.usefixtures("_zone")
@pytest.mark.parametrize("by", ["hour", "day"])
def test_charts_take_local_times(by: Any) -> None:
    post, local = factories.post(), datetime(2026, 11, 20, 1)
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    flush()
    assert sum(point.views for point in reports.series(post, by=by)) == 1
    points = reports.series(post, since=local, until=local + timedelta(hours=2), by=by)
    assert points[0].start.astimezone(timezone.utc).hour == (0 if by == "hour" else 23)
    readers = reports.reader_series(factories.category(), since=local, until=local + timedelta(hours=2), by=by)
    assert [point.start for point in readers] == [point.start for point in points]
    assert buckets.now(local) == datetime(2026, 11, 20, 0, tzinfo=timezone.utc)


@pytest.mark.usefixtures("_zone")
def test_a_log_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    factories.post(pk=1)
    now = buckets.now()
    FlushRun.objects.create(started=now)
    lines = [weblogs.line(start=now - timedelta(hours=1)), weblogs.line(start=now, after=1, address="192.0.2.2")]
    call_command("readtrack", "import", weblogs.write(tmp_path / "access.log", lines))
    assert f"goes on after {now:%Y-%m-%d %H:%M} UTC" in capsys.readouterr().out
    record = Import.objects.get()
    assert record.since == now.replace(microsecond=0) - timedelta(hours=1)
    assert record.started - now < timedelta(minutes=1)
