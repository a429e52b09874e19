"""The Celery tasks, run by a real worker, by the names in the schedule."""

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from threading import Event
from typing import Any

import pytest
from celery import Celery
from celery.signals import before_task_publish, task_postrun
from django.core import mail
from django.db import connections
from pytest_django import Settings

from readtrack import buckets, reports, tracker
from readtrack.schedule import readtrack_schedule
from readtrack.tasks import run_job
from tests.support import factories
from tests.support.celery_site import celery_site, celery_worker
from tests.support.waiting import ENOUGH


@pytest.fixture
def app() -> Iterator[Celery]:
    """Returns a site's Celery with the schedule."""
    with celery_site() as app:
        app.conf.beat_schedule = {**readtrack_schedule()}
        yield app


def test_every_scheduled_task_exists_under_its_name(app: Celery) -> None:
    app.loader.import_task_module("readtrack.tasks")
    assert {entry["task"] for entry in readtrack_schedule().values()} <= set(app.tasks)


@pytest.mark.django_db
def test_the_tasks_do_what_they_say(app: Celery) -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    for job in ("flush-changed", "flush-views", "refresh-trending"):
        assert run_job.apply((job,), throw=True).successful()
    post.refresh_from_db()
    assert post.view_count == 1
    assert [trend.obj for trend in reports.trending()] == [post]


@pytest.mark.needs_parts("digest")
@pytest.mark.django_db
def test_the_task_sends_the_digests_that_are_due(
    app: Celery, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support import digests

    settings.READTRACK = {"DIGEST": digests.DIGEST}
    editor = digests.editor()
    digests.article(5)
    monday = digests.monday_morning()
    monkeypatch.setattr(buckets, "now", lambda at=None: at or monday)
    for _ in range(2):
        assert run_job.apply(("digest",), throw=True).successful()
    assert [message.to for message in mail.outbox] == [[editor.email]]


@pytest.mark.django_db(transaction=True)
def test_a_worker_runs_what_beat_sends(app: Celery) -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    entry = readtrack_schedule()["readtrack-flush-views"]
    has_run = Event()

    def note(sender: Any, **kwargs: Any) -> None:
        connections.close_all()  # of the worker's thread
        if (sender.name, tuple(kwargs["args"])) == (entry["task"], entry["args"]):
            has_run.set()

    # By a signal, because Celery 5.3 keeps no result of a task that says `ignore_result`.
    task_postrun.connect(note)
    try:
        with celery_worker(app):
            app.send_task(entry["task"], entry["args"], **entry["options"])
            assert has_run.wait(ENOUGH)
    finally:
        task_postrun.disconnect(note)
    post.refresh_from_db()
    assert post.view_count == 1


@pytest.mark.django_db
@pytest.mark.needs_parts("cluster")
@pytest.mark.parametrize(("job", "interval"), [("flush-changed", 60), ("flush-views", 3600)])
def test_a_share_expires_when_the_next_tick_comes(
    app: Celery, settings: Settings, job: str, interval: int
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 16, "flush_tasks": 2}}
    expiries: list[datetime] = []

    def note(headers: dict[str, Any], **kwargs: Any) -> None:
        expiries.append(datetime.fromisoformat(headers["expires"]))

    before = datetime.now(timezone.utc)
    before_task_publish.connect(note)
    try:
        run_job(job)
    finally:
        before_task_publish.disconnect(note)
    after = datetime.now(timezone.utc)
    assert len(expiries) == 2
    length = timedelta(seconds=interval)
    assert all(before + length <= expiry <= after + length for expiry in expiries)
