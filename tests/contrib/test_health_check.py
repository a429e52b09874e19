"""The check for django-health-check, asked by its own view."""

from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.urls import path
from health_check.exceptions import ServiceUnavailable, ServiceWarning
from health_check.views import HealthCheckView
from pytest_django import Settings

from readtrack import buckets
from readtrack.contrib.health_check import ReadTrack
from readtrack.models import PendingPublication
from tests.conftest import use_redis
from tests.doctor.conftest import SECOND, run

# A check runs in a thread of its own, which sees only what is committed, and it closes connections.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

urlpatterns = [
    path("health/", HealthCheckView.as_view(checks=["readtrack.contrib.health_check.ReadTrack"])),
]


def health(**headers: str) -> Any:
    return Client().get("/health/", headers=headers)


def test_a_page_of_health_tells_when_flushes_are_late() -> None:
    row = run(ago=10)
    answer = health(Accept="application/json")
    assert answer.status_code == 200
    assert list(answer.json().values()) == ["OK"]
    row.delete()
    run(ago=600)
    answer = health(Accept="application/json")
    assert answer.status_code == 500
    assert list(answer.json().values()) == [
        "Unavailable: flushes; manage.py readtrack doctor says more"
    ]
    assert "ReadTrack" in health(Accept="application/openmetrics-text").text


def test_a_redis_that_is_gone_is_told_without_its_address(settings: Settings) -> None:
    run(ago=10)
    use_redis(settings, "redis://:password@127.0.0.1:1/0")
    with pytest.raises(ServiceUnavailable) as raised:
        ReadTrack().run()
    assert raised.value.message == "connection; manage.py readtrack doctor says more"


def test_publications_that_wait_are_a_warning() -> None:
    run(ago=10)
    PendingPublication.objects.create(
        subject="site.category:1", written=buckets.now() - 600 * SECOND
    )
    with pytest.raises(ServiceWarning, match="outbox"):
        ReadTrack().run()
    ReadTrack(examinations=("connection", "flushes")).run()


def test_an_error_comes_before_a_warning() -> None:
    run(ago=600)
    PendingPublication.objects.create(
        subject="site.category:1", written=buckets.now() - 600 * SECOND
    )
    with pytest.raises(ServiceUnavailable, match="flushes;"):
        ReadTrack().run()


def test_a_name_that_the_doctor_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="'flush' is none of 'connection', "):
        ReadTrack(examinations=("flush",))


def test_the_thread_of_a_check_leaves_no_connection_open(settings: Settings) -> None:
    run(ago=10)
    before = sessions()
    for _ in range(5):
        assert health(Accept="application/json").status_code == 200
    assert sessions() <= before


def sessions() -> int:
    """Returns the number of sessions of the test database."""
    connection = connections["default"]
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        [number] = cursor.fetchone()
    return int(number)
