"""Sites with USE_TZ = False: times are right in each database."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils.timezone import get_default_timezone, make_naive
from pytest_django import Settings

from readtrack import buckets, tracker
from readtrack.dashboard.page import page_context
from readtrack.flush.run import flush
from readtrack.imports.models import Import
from readtrack.models import FlushRun
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.scope import Scope
from tests.imports import weblogs
from tests.support import factories
from tests.support.depth import some

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"]),
    pytest.mark.usefixtures("database"),
]


def for_field(at: datetime) -> datetime:
    """Returns the time as a DateTimeField takes it."""
    return at if settings.USE_TZ else make_naive(at, get_default_timezone())


@pytest.fixture(params=some(["naive"], deep=["aware"]))  # the other tests are aware
def _zone(request: pytest.FixtureRequest, settings: Settings) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    settings.USE_TZ = request.param == "aware"


@pytest.mark.usefixtures("_zone")
def test_a_flush_is_late_by_the_right_time() -> None:
    now = buckets.now()
    FlushRun.objects.create(started=for_field(now), ended=for_field(now))
    last = FlushRun.objects.get()
    assert last.began == now
    assert last.took == timedelta()
    assert not page_context(Scope.parse({}))["is_late"]
    FlushRun.objects.update(ended=for_field(now - timedelta(hours=1)))
    assert page_context(Scope.parse({}))["is_late"]


@pytest.mark.usefixtures("_zone")
def test_a_site_flushes_and_shows_what_it_did(admin_client: Any) -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    run = flush()
    assert flush(only_changed=True).kind == run.Kind.CHANGED
    post.refresh_from_db()
    assert post.view_count == 1
    call_command("readtrack", "doctor")
    assert ">Saved " in admin_client.get("/admin/readtrack/dashboard/").content.decode()
    assert (
        run.started.strftime("%Y")
        in admin_client.get("/admin/readtrack/flushrun/").content.decode()
    )


@pytest.mark.usefixtures("_zone")
@pytest.mark.parametrize("by", ["hour", "day"])
def test_charts_take_local_times(by: Any) -> None:
    post, local = factories.post(), datetime(2026, 11, 20, 1)
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    flush()
    assert sum(point.views for point in numbers_reports.series(post, by=by)) == 1
    points = numbers_reports.series(post, since=local, until=local + timedelta(hours=2), by=by)
    assert points[0].start.astimezone(timezone.utc).hour == (0 if by == "hour" else 23)
    readers = numbers_reports.reader_series(
        factories.category(), since=local, until=local + timedelta(hours=2), by=by
    )
    assert [point.start for point in readers] == [point.start for point in points]
    assert buckets.now(local) == datetime(2026, 11, 20, 0, tzinfo=timezone.utc)


@pytest.mark.usefixtures("_zone")
def test_a_log_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    factories.post(pk=1)
    now = buckets.now()
    FlushRun.objects.create(started=for_field(now))
    lines = [
        weblogs.line(start=now - timedelta(hours=1)),
        weblogs.line(start=now, after=1, address="192.0.2.2"),
    ]
    call_command("readtrack", "import", weblogs.write(tmp_path / "access.log", lines))
    assert f"goes on after {now:%Y-%m-%d %H:%M} UTC" in capsys.readouterr().out
    record = Import.objects.get()
    assert record.since == int(now.timestamp()) - 3600
    assert buckets.now(record.started) - now < timedelta(minutes=1)
