"""What happens on real servers is told once, with the page to look at, and is over again."""

import re
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import localtime
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, parts, scheduled, tracker
from readtrack.alerts import minutes, records, run, watching
from readtrack.alerts.models import Alert, AlertDelivery
from readtrack.alerts.run import send_alerts
from readtrack.models import FlushRun
from readtrack.numbers import hours_of_models
from readtrack.numbers.models import History
from readtrack.numbers.sql import usual
from readtrack.numbers.sql.gained import WINDOWS, name_of_gains
from readtrack.numbers.sql.usual import HOURS_OF_WEEK, Band, name_of_week
from readtrack.store import keys
from readtrack.subjects import subject_of
from readtrack.tasks import run_job
from tests.alerts.conftest import SITE, use_alerts
from tests.conftest import Start
from tests.doctor.conftest import run as flush_run
from tests.site.models import Post
from tests.support import factories
from tests.support.forks import Forks
from tests.support.usual import article

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alerts")]
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def at(redis: Redis) -> datetime:
    """Returns the time of a look, at which Redis has been watched for a day."""
    at = buckets.now().replace(second=59, microsecond=0)
    minutes.watched_since(at=at - DAY)
    return at


@pytest.fixture(autouse=True)
def flushed() -> None:
    flush_run(ago=5)


def view(redis: Redis, post: Post, *, each: int, since: int, until: int = 0, at: datetime) -> None:
    """Lets the post have so many views in each of the minutes from `since` to `until` minutes ago."""
    subject = subject_of(post)
    for ago in range(until, since):
        bucket = buckets.minute_bucket((at - ago * MINUTE).replace(second=0))
        redis.zincrby(keys.trending_bucket(keys.tag(subject), bucket), each, subject)
    if since == 60:  # so it was all day
        for ago in range(1, 24):
            bucket = buckets.hour_bucket(at - ago * HOUR)
            redis.hset(keys.hours(subject), bucket, 60 * each)


def spike(redis: Redis, post: Post, *, at: datetime) -> None:
    view(redis, post, each=10, since=60, until=3, at=at)
    view(redis, post, each=80, since=3, at=at)


def test_a_story_at_five_times_its_usual_is_told_once(
    redis: Redis, at: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not of the row, because not every database stores these characters.
    monkeypatch.setattr(Post, "__str__", lambda post: "Of\u200b all\U000e0061\u202e")
    post = factories.post()
    spike(redis, post, at=at)
    [alert] = send_alerts(at=at)
    assert (alert.kind, alert.title, alert.views) == ("story", "Of all", 240)
    assert alert.url == f"{SITE}/admin/readtrack/dashboard/object/site.post:{post.pk}/"
    assert len(mail.outbox) == 1
    assert send_alerts(at=at) == []
    assert send_alerts(at=at + MINUTE) == []
    assert len(mail.outbox) == 1
    assert Alert.objects.get().is_open


def test_a_story_at_four_times_its_usual_is_not(redis: Redis, at: datetime) -> None:
    post = factories.post()
    view(redis, post, each=100, since=60, until=3, at=at)
    view(redis, post, each=400, since=3, at=at)
    assert send_alerts(at=at) == []


def test_a_story_is_over_and_not_told_again_on_that_day(redis: Redis, at: datetime) -> None:
    post = factories.post()
    spike(redis, post, at=at)
    assert send_alerts(at=at)
    assert send_alerts(at=at + 2 * HOUR) == []
    alert = Alert.objects.get()
    assert alert.is_open is None
    assert alert.ended == at + 2 * HOUR
    for later, number in ((3 * HOUR, 0), (25 * HOUR, 1)):
        spike(redis, post, at=at + later)
        assert len(send_alerts(at=at + later)) == number


def test_an_alert_is_over_minutes_after_its_burst(redis: Redis, at: datetime) -> None:
    post = factories.post()
    view(redis, post, each=70, since=1, at=at)
    [alert] = send_alerts(at=at)
    assert alert.minutes == 3
    later = at + 4 * MINUTE
    view(redis, post, each=1, since=3, at=later)
    send_alerts(at=later)
    assert Alert.objects.get().is_open  # the burst is one of the last five minutes
    later = at + 6 * MINUTE
    view(redis, post, each=1, since=2, at=later)
    send_alerts(at=later)
    assert Alert.objects.get().ended == later


def test_an_alert_about_half_an_hour_is_not_over_by_a_pause_of_minutes(
    redis: Redis, at: datetime
) -> None:
    post = factories.post()
    view(redis, post, each=2, since=28, at=at)
    [alert] = send_alerts(at=at)
    assert alert.minutes == 30
    view(redis, post, each=1, since=1, at=at + 7 * MINUTE)
    send_alerts(at=at + 7 * MINUTE)
    assert Alert.objects.get().is_open


def test_a_view_that_is_recorded_counts(redis: Redis, at: datetime, settings: Settings) -> None:
    settings.READTRACK = {**settings.READTRACK, "RATE": (0, 10)}
    post = factories.post()
    for _ in range(40):
        tracker.record(factories.hit(subject_of(post)))
    [alert] = send_alerts()
    assert alert.views == 40


def store_usual(*, views_of_hour: float) -> None:
    """Stores that articles gain so many views in each hour."""
    by_age = {}
    for age in (1, 2, 3, 6):
        by_age[age] = Band(0, views_of_hour * age, 0)
        by_age[usual.START + age] = Band(0, views_of_hour * usual.age_before(age), 0)
    gains = {
        number: Band(0, views_of_hour * window.length, 0) for number, window in enumerate(WINDOWS)
    }
    usual.replace({"site.article": by_age, name_of_gains("site.article"): gains}, hour=1)


def test_what_its_kind_has_at_that_age_is_asked_of_sql(redis: Redis, at: datetime) -> None:
    post: Any = article(timedelta(hours=4), views=10)
    store_usual(views_of_hour=3000)
    spike(redis, post, at=at)  # 80 views a minute, where its kind has 50
    assert send_alerts(at=at) == []
    store_usual(views_of_hour=600)
    assert len(send_alerts(at=at)) == 1


def test_a_redis_that_lost_its_data_is_watched_for_an_hour_first(
    redis: Redis, at: datetime
) -> None:
    redis.flushdb()
    spike(redis, factories.post(), at=at)
    assert send_alerts(at=at) == []
    assert send_alerts(at=at + 59 * MINUTE) == []
    post = factories.post()
    spike(redis, post, at=at + 61 * MINUTE)
    assert len(send_alerts(at=at + 61 * MINUTE)) == 1


@pytest.mark.parametrize(("views", "is_told"), [(35, False), (300, True)])
def test_what_a_story_has_by_history_is_usual_before_redis_was_watched(
    views: int, is_told: bool, redis: Redis
) -> None:
    """A story with 60 views an hour for days, in a Redis that knows one hour and no view of it."""
    at = buckets.now().replace(minute=40, second=59, microsecond=0)
    minutes.watched_since(at=at - 2 * HOUR)
    post: Any = article(30 * DAY, views=1000)
    present = buckets.hour_index(at)
    for name in (subject_of(post), "site.article"):
        for ago in range(72, 0, -1):
            absolute = 1000 + 60 * (73 - ago)
            History.objects.create(subject=name, hour=present - ago, views=absolute, visitors=0)
    for ago in range(30):
        minute = buckets.minute_bucket((at - ago * MINUTE).replace(second=0))
        tag = keys.tag(subject_of(post))
        redis.zincrby(keys.trending_bucket(tag, minute), views // 30 + 1, subject_of(post))
    assert [alert.usual for alert in send_alerts(at=at)] == (
        [pytest.approx(2 * 3, rel=0.05)] if is_told else []
    )


def test_not_more_than_ten_stories_are_told_in_an_hour(redis: Redis, at: datetime) -> None:
    posts = [factories.post() for _ in range(15)]
    for post in posts:
        spike(redis, post, at=at)
    view(redis, posts[7], each=5, since=3, at=at)
    told = send_alerts(at=at)
    assert len(told) == records.MOST_STORIES
    assert told[0].subject == subject_of(posts[7])  # that with the most views
    assert send_alerts(at=at + MINUTE) == []


def test_a_deleted_story_is_not_told(redis: Redis, at: datetime) -> None:
    post = factories.post()
    spike(redis, post, at=at)
    Post.objects.filter(pk=post.pk).delete()
    assert send_alerts(at=at) == []


def test_the_site_at_a_third_of_its_usual_is_told_and_comes_back(redis: Redis) -> None:
    at = datetime.fromisoformat("2026-11-26T10:40:00+00:00")
    week = {slot: Band(0, 3000.0, 0) for slot in range(HOURS_OF_WEEK)}
    usual.replace({name_of_week(): week}, hour=1)

    def have(hour: int, views: int) -> None:
        redis.set(
            keys.prefix() + hours_of_models.hour_name(f"site.post{keys.tags()[0]}", hour), views
        )

    present = buckets.hour_index(at)
    have(present - 1, 2900)
    have(present, 600)
    [alert] = send_alerts(at=at)
    assert (alert.kind, alert.views, alert.usual, alert.minutes) == ("site", 600, 2000, 40)
    assert alert.url == f"{SITE}/admin/readtrack/dashboard/"
    assert mail.outbox[0].subject == "[Django] The site has 30% of its usual views"
    assert send_alerts(at=at + MINUTE) == []
    have(present, 1500)
    send_alerts(at=at + 2 * MINUTE)
    assert Alert.objects.get().ended


def test_late_flushes_are_told_once_until_they_are_not() -> None:
    FlushRun.objects.all().delete()
    assert send_alerts() == []  # there was none yet
    flush_run(ago=190, error="")
    [alert] = send_alerts()
    assert alert.kind == "flush"
    assert "began 3 min ago" in alert.details
    assert alert.url == f"{SITE}/admin/readtrack/flushrun/"
    assert "manage.py readtrack doctor" in str(mail.outbox[0].body)
    assert send_alerts() == []
    flush_run(ago=1)
    assert send_alerts() == []
    assert Alert.objects.get().ended


def test_a_flush_that_never_succeeded_is_told_with_its_error() -> None:
    FlushRun.objects.all().delete()
    flush_run(ago=10, error="no table")
    [alert] = send_alerts()
    assert alert.details == "No flush has succeeded yet. The last one failed: no table"


def test_a_redis_that_is_gone_is_told_once_and_comes_back(
    start_redis: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "PAUSE", 0.01)
    server = start_redis()
    assert send_alerts() == []
    server.stop()
    call_command("readtrack", "alerts", verbosity=0)
    alert = Alert.objects.get()
    assert alert.kind == "redis"
    assert "Redis failed" in alert.details
    assert alert.url == f"{SITE}/admin/readtrack/dashboard/"
    flush_run(ago=600)  # flushes are late as well, by the same cause
    FlushRun.objects.exclude(started__lt=buckets.now() - 500 * timedelta(seconds=1)).delete()
    assert send_alerts() == []
    assert len(mail.outbox) == 1
    server.restart(keep=False)
    assert send_alerts() == []  # the next flush is on its way
    assert Alert.objects.get().ended
    assert [alert.kind for alert in send_alerts(at=buckets.now() + 4 * MINUTE)] == ["flush"]


def test_code_of_the_site_that_fails_keeps_no_other_alert_from_being_told(
    redis: Redis, at: datetime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(obj: Any) -> Any:
        raise LookupError("no table")

    spike(redis, factories.post(), at=at)
    FlushRun.objects.all().delete()
    flush_run(ago=190)
    monkeypatch.setattr(watching, "published_at", fail)
    assert [alert.kind for alert in send_alerts(at=at)] == ["flush"]
    assert len(mail.outbox) == 1
    assert "LookupError: no table" in caplog.text


def test_a_look_that_fails_keeps_nothing_from_being_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flush_run(ago=190)
    FlushRun.objects.exclude(started__lt=buckets.now() - 100 * timedelta(seconds=1)).delete()
    with monkeypatch.context() as patch:
        patch.setattr(run, "tell_due", lambda at: None)
        assert send_alerts()

    def fail(at: datetime) -> Any:
        raise LookupError

    monkeypatch.setattr(run, "look", fail)
    with pytest.raises(LookupError):
        send_alerts()
    assert len(mail.outbox) == 1


def test_cron_tells_that_redis_is_gone(
    start_redis: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watching, "PAUSE", 0.01)
    start_redis().stop()
    call_command("readtrack", "alerts", "--dry-run")
    call_command("readtrack", "alerts")
    call_command("readtrack", "alerts")
    output = capsys.readouterr().out
    assert output.count("Redis failed") == 2
    assert "Connection refused. https://" in output
    assert output.endswith("Nothing new.\n")
    assert len(mail.outbox) == 1


def test_a_short_fail_over_is_not_told(start_redis: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start_redis()
    server.stop()

    def restart(seconds: float) -> None:
        server.restart(keep=False)

    monkeypatch.setattr(watching, "time", SimpleNamespace(sleep=restart))
    assert send_alerts() == []


def test_without_alerts_nothing_is_asked_or_told(settings: Settings, redis: Redis) -> None:
    settings.READTRACK = {"CACHE": "gone"}
    assert send_alerts() == []
    with pytest.raises(CommandError, match="is empty"):
        call_command("readtrack", "alerts")


def test_a_setting_that_cannot_be_used_is_refused(settings: Settings) -> None:
    use_alerts(settings, site="www.example.com")
    with pytest.raises(ImproperlyConfigured, match="'site'"):
        send_alerts()


def test_a_dry_run_prints_what_would_be_told(
    redis: Redis, at: datetime, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("readtrack", "alerts", "--dry-run")
    assert capsys.readouterr().out == "Nothing new.\n"
    spike(redis, factories.post(title="Of all"), at=buckets.now())
    call_command("readtrack", "alerts", "--dry-run")
    output = capsys.readouterr().out
    assert "usual views: Of all. https://www.example.com/admin/" in output
    assert not Alert.objects.exists()
    assert mail.outbox == []
    call_command("readtrack", "alerts")
    assert "Of all" in capsys.readouterr().out
    assert len(mail.outbox) == 1


def test_a_dry_run_says_from_when_on_stories_are_told(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    noon = datetime(2026, 11, 26, 12, tzinfo=timezone.utc)
    monkeypatch.setattr(buckets, "now", lambda at=None: at or noon)
    call_command("readtrack", "alerts", "--dry-run")
    clock = localtime(noon + HOUR).strftime("%H:%M")
    assert f"Stories are told from {clock} on" in capsys.readouterr().out
    monkeypatch.setattr(buckets, "now", lambda at=None: at or noon + HOUR)
    call_command("readtrack", "alerts", "--dry-run")
    assert "Stories" not in capsys.readouterr().out


def test_old_alerts_are_deleted(redis: Redis, at: datetime) -> None:
    long_ago = at - 91 * DAY
    Alert.objects.create(kind="site", name="site:", is_open=None, started=long_ago, ended=long_ago)
    spike(redis, factories.post(), at=at)
    send_alerts(at=at)
    send_alerts(at=at + 2 * HOUR)
    [alert] = Alert.objects.all()
    assert alert.kind == "story"
    assert AlertDelivery.objects.count() == 2


def test_the_admin_lists_alerts_with_links(redis: Redis, at: datetime) -> None:
    spike(redis, factories.post(title="Of all"), at=at)
    [alert] = send_alerts(at=at)
    Alert.objects.filter(pk=alert.pk).update(usual=0.276070155145372)
    Alert.objects.create(kind="redis", name="redis:", url="javascript:alert(1)")
    staff = User.objects.create_superuser("staff")
    page = factories.browser(staff).get("/admin/readtrack_alerts/alert/").text
    assert f'<a href="{alert.url}">Of all</a>' in page
    assert '<td class="field-usual_views">&lt; 1</td>' in page
    assert "javascript:" not in page
    assert "/admin/readtrack_alerts/alert/add/" not in page


def test_the_page_of_an_alert_says_what_it_means_and_leads_to_the_story(
    redis: Redis, at: datetime
) -> None:
    spike(redis, factories.post(title="Of all"), at=at)
    [alert] = send_alerts(at=at)
    Alert.objects.filter(pk=alert.pk).update(usual=12.19676583737993922)
    staff = factories.browser(User.objects.create_superuser("staff"))
    address = f"/admin/readtrack_alerts/alert/{alert.pk}/change/"
    page = staff.get(address).text
    assert f'<a href="{alert.url}">Of all</a>' in page
    assert "12.19" not in page
    assert re.search(r'readonly">12</div>', page)
    assert '<td class="field-minutes">3</td>' in staff.get("/admin/readtrack_alerts/alert/").text
    for kind, words in (("flush", "numbers are not saved"), ("redis", "views are not counted")):
        Alert.objects.filter(pk=alert.pk).update(kind=kind)
        assert words in staff.get(address).text


@pytest.mark.skipif(connection.vendor == "mysql", reason="MariaDB rolls back no DROP TABLE")
def test_the_dashboard_does_not_fail_for_want_of_the_table_of_alerts() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE readtrack_alerts_alertdelivery")
        cursor.execute("DROP TABLE readtrack_alerts_alert")
    staff = User.objects.create_superuser("staff")
    page: Any = factories.browser(staff).get("/admin/readtrack/dashboard/")
    assert "Alerts" in [label for label, _ in page.context["links"]]


def test_open_alerts_are_not_counted_for_who_may_not_see_them() -> None:
    staff = factories.user(is_staff=True)
    with CaptureQueriesContext(connection) as queries:
        page = factories.browser(staff).get("/admin/readtrack/dashboard/")
    assert page.status_code == 403
    assert not [query for query in queries if "readtrack_alerts" in query["sql"]]


def test_the_schedule_has_it_only_with_alerts(
    at: datetime, redis: Redis, settings: Settings
) -> None:
    assert ("send-alerts", 60) in [(job.name, job.interval) for job in parts.jobs()]
    spike(redis, factories.post(), at=buckets.now())
    assert run_job.apply(("send-alerts",), throw=True).successful()
    assert Alert.objects.count() == 1
    scheduled.run_job("send-alerts")
    assert len(mail.outbox) == 1
    settings.READTRACK = {}
    assert "send-alerts" not in [job.name for job in parts.jobs()]


PAGE = """
import sys
import django

django.setup()
from django.conf import settings
from django.db import connection
from django.test import Client

settings.ALLOWED_HOSTS = ["*"]
settings.READTRACK["ALERTS"] = {"site": "https://example.com"}
Client().get("/nothing-here/")
from readtrack import middleware, reports, tracker, urls
from readtrack.templatetags import readtrack
print(sorted(name for name in sys.modules if name.startswith("readtrack.alerts.")))
"""


def test_no_page_imports_what_sends_alerts(forks: Forks) -> None:
    of_each_part = [f"readtrack.alerts.{name}" for name in ("admin", "apps", "models")]
    assert forks.run(PAGE).output.strip() == str(of_each_part)
