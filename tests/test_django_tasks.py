"""The scheduled work as Django's tasks, run by Django's own backend and by a worker of a database."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import django
import pytest
from pytest_django import Settings

from readtrack import reports, tracker
from readtrack.management.subcommands.schedule import Enqueued
from readtrack.models import FlushRun
from readtrack.parts import Job
from readtrack.scheduled import Claims
from tests.support import factories

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(django.VERSION < (6, 0), reason="Django's tasks came with Django 6.0"),
]
ROOT = Path(__file__).parents[1]


def tasks() -> Any:
    from readtrack import django_tasks

    return django_tasks


def test_the_tasks_do_what_they_say() -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    for job in ("flush-changed", "refresh-trending"):
        result = tasks().run_job.enqueue(job)
        assert result.status == "SUCCESSFUL", result.errors
    post.refresh_from_db()
    assert post.view_count == 1
    assert [trend.obj for trend in reports.trending()] == [post]


def test_a_flush_of_everything_writes_what_no_list_of_changes_has(redis: Any) -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    result = tasks().run_job.enqueue("flush-views")
    assert result.status == "SUCCESSFUL", result.errors
    post.refresh_from_db()
    assert post.view_count == 1


@pytest.mark.needs_parts("cluster")
def test_a_flush_is_divided_into_tasks(settings: Settings) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 16, "flush_tasks": 2}}
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    assert tasks().run_job.enqueue("flush-changed").status == "SUCCESSFUL"
    post.refresh_from_db()
    assert post.view_count == 1
    assert {*FlushRun.objects.values_list("share", flat=True)} == {"1/2", "2/2"}


def test_a_task_is_not_sent_while_the_one_before_waits_for_a_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = tasks().run_job.using(backend="waiting")
    backend = task.get_backend()
    monkeypatch.setattr(backend, "supports_get_result", True)
    claims = Claims(30.0)
    job = Job("flush-changed", 60.0, lambda: None)
    send = Enqueued(task, job, claims.put_back)
    send()
    send()
    [result] = backend.results
    object.__setattr__(result, "status", "RUNNING")
    send()
    assert len(backend.results) == 2
    backend.clear()  # as a command that removes old results
    send()
    assert len(backend.results) == 1


def test_a_job_whose_task_cannot_be_sent_is_due_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise OSError

    task = tasks().run_job.using(backend="waiting")
    monkeypatch.setattr(task.get_backend(), "enqueue", refuse)
    claims = Claims(30.0)
    job = Job("flush-changed", 60.0, lambda: None)
    assert claims.due([job]) == [job]
    with pytest.raises(OSError):  # noqa: PT011
        Enqueued(task, job, claims.put_back)()
    assert claims.due([job]) == [job]


SITE_SETTINGS = """
from tests.settings import *

INSTALLED_APPS += ["django_tasks_db"]
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
DATABASES = {
    alias: {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER + "/" + alias + ".sqlite3"}
    for alias in ("default", "lite")
}
"""

SITE = """
import json, signal, subprocess, sys, time
import django

django.setup()
from django.core.management import call_command
from django_tasks_db.models import DBTaskResult
from readtrack import tracker
from tests.support import factories

call_command("migrate", run_syncdb=True, verbosity=0)
post = factories.post()
tracker.record(factories.hit(f"site.post:{post.pk}"))
schedule = subprocess.Popen([sys.executable, "-m", "django", "readtrack", "schedule", "--enqueue"])
until = time.monotonic() + 60
while DBTaskResult.objects.count() < 3 and time.monotonic() < until:
    time.sleep(0.1)
schedule.send_signal(signal.SIGTERM)
code = schedule.wait(timeout=60)
call_command("db_worker", batch=True, interval=0.1, verbosity=0)
post.refresh_from_db()
tasks = {result.args_kwargs["args"][0]: result.status for result in DBTaskResult.objects.all()}
print(json.dumps([code, post.view_count, tasks]))
"""


@pytest.mark.one_server("starts a site of its own")
def test_a_worker_of_the_database_runs_what_the_schedule_sends(
    tmp_path: Path, redis_url: str
) -> None:
    if not find_spec("django_tasks_db"):
        pytest.skip("django-tasks-db is not installed")
    text = SITE_SETTINGS.replace("FOLDER", repr(str(tmp_path)))
    (tmp_path / "site_settings.py").write_text(text)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "site_settings",
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "READTRACK_TEST_REDIS_URL": redis_url,
    }
    done = subprocess.run(
        [sys.executable, "-c", SITE],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    code, views, results = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    assert views == 1
    jobs = ["flush-changed", "flush-views", "refresh-trending"]
    assert results == dict.fromkeys(jobs, "SUCCESSFUL")
