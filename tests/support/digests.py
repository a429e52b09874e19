"""A newsroom with the numbers of its last weeks, and those who read them."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import django
from django.contrib.auth.models import Permission, User
from pytest_django import Settings

from readtrack import buckets
from readtrack.digest.periods import DigestPeriod, last_period
from readtrack.digest.readers import Reader, reader_of
from readtrack.models import FlushRun
from readtrack.numbers import local_time
from readtrack.subjects import subject_of
from tests.dashboard.test_groups import Gains, store
from tests.site.models import Article
from tests.support import factories

SITE = "https://news.example.com"
DIGEST: dict[str, Any] = {"site": SITE, "authors": True, "from": "numbers@example.com"}


def editor(**values: Any) -> User:
    """Returns an editor with an e-mail address."""
    number = User.objects.count()
    user = factories.user(is_staff=True, email=f"editor{number}@example.com", **values)
    user.user_permissions.set(Permission.objects.filter(codename="view_numbers"))
    return user


def author(**values: Any) -> User:
    """Returns a user with an e-mail address, who may see the numbers of nothing but own articles."""
    number = User.objects.count()
    return factories.user(email=f"author{number}@example.com", **values)


def week() -> DigestPeriod:
    """Returns the last week that is over."""
    return last_period("week", at=buckets.now())


def monday_morning(hours: float = 8) -> datetime:
    """Returns that time (UTC) on the Monday after the last week."""
    return local_time.day_start(week().last_day + buckets.DAY) + timedelta(hours=hours)


def article(views: int, *, before: int = 0, reads: int = 0, **values: Any) -> Article:
    """Returns an article with so many views in the last week, and in the week before."""
    return articles({"views": views, "before": before, "reads": reads, **values})[0]


def articles(*all_values: dict[str, Any]) -> list[Article]:
    """Returns articles with such numbers, and stores the history that they make. Call it once."""
    made: list[Article] = []
    gained: Gains = {}
    hour = local_time.first_hour_of(week().first_day) + 30
    reads_of_all = 0
    for values in all_values:
        numbers = {name: values.pop(name, 0) for name in ("views", "before", "reads")}
        obj = Article.objects.create(**values)
        subject = subject_of(obj)
        gained[subject, hour - 7 * 24] = numbers["before"]
        gained[subject, hour] = numbers["views"]
        gained[f"reads:{subject}", hour] = numbers["reads"]
        reads_of_all += numbers["reads"]
        made.append(obj)
    gained["reads:site.article", hour] = reads_of_all
    first = subject_of(made[0])
    gained[first, hour - 60 * 24] = 1  # history began before both weeks
    store({name: number for name, number in gained.items() if number})
    flush_ended()
    return made


def flush_ended() -> None:
    """Notes that a full flush has stored everything, also of the weeks to come."""
    later = buckets.now() + 10 * buckets.WEEK
    FlushRun.objects.create(kind=FlushRun.Kind.FULL, started=later, ended=later)


@contextmanager
def silent_mail_server(settings: Settings) -> Iterator[None]:
    """Lets Django send mails to a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        use_mail_server(settings, "django.core.mail.backends.smtp.EmailBackend", port=port)
        yield


def use_mail_server(settings: Settings, backend: str, *, port: int = 0) -> None:
    """Lets Django send mails by that backend, to that port of this machine."""
    if django.VERSION >= (6, 1):
        options = {"host": "127.0.0.1", "port": port} if port else {}
        settings.MAILERS = {"default": {"BACKEND": backend, "OPTIONS": options}}
        return
    settings.EMAIL_BACKEND = backend
    settings.EMAIL_HOST = "127.0.0.1"
    settings.EMAIL_PORT = port


def reader(user: User) -> Reader:
    """Returns the user as a reader of digests."""
    found = reader_of(user)
    assert found is not None
    return found
