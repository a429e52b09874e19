"""A site whose transactions are stricter than READ COMMITTED: flushes end well beside its saves."""

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.db.models import F

from readtrack.flush.run import flush
from readtrack.models import FlushRun
from readtrack.sql import databases
from tests.site.models import Post
from tests.support.counts import stored, view
from tests.support.depth import examples

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="threads need a database they share"),
]
LEVELS = ["repeatable read", "serializable"]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    """Lets new connections begin transactions of that level."""
    options = connections["default"].settings_dict["OPTIONS"]
    connection.close()
    if connection.vendor == "postgresql":
        options["options"] = (
            f"-c default_transaction_isolation={request.param.replace(' ', chr(92) + ' ')}"
        )
    else:
        options["isolation_level"] = request.param
    yield request.param
    connection.close()
    options.pop("options", None)
    options.pop("isolation_level", None)


@pytest.mark.usefixtures("level")
def test_flushes_beside_saves_and_other_flushes_end_well() -> None:
    Post.objects.bulk_create(Post(title="x") for _ in range(300))
    posts = list(Post.objects.order_by("pk"))
    flush()
    is_over = threading.Event()
    errors: list[Exception] = []

    def save() -> None:
        while not is_over.is_set():
            with suppress(OperationalError):  # a flush was in its way
                some_post = random.choice(posts)
                Post.objects.filter(pk=some_post.pk).update(title="y", view_count=F("view_count"))

    def flush_often() -> None:
        try:
            for _ in range(examples(5)):
                flush()
        except Exception as error:
            errors.append(error)

    def closing_connections(work: object) -> None:
        try:
            work()  # type: ignore[operator]
        finally:
            connections.close_all()

    saver = threading.Thread(target=closing_connections, args=(save,))
    other = threading.Thread(target=closing_connections, args=(flush_often,))
    saver.start()
    other.start()
    for _ in range(examples(5)):
        view(*posts[100:200])
        flush()
    other.join()
    is_over.set()
    saver.join()
    flush()
    assert errors == []
    assert not FlushRun.objects.exclude(error="", failed=0).exists()
    assert {stored(post) for post in posts[100:200]} == {examples(5)}


@pytest.mark.skipif(connection.vendor != "postgresql", reason="MySQL logs statements by the level")
def test_a_transaction_of_a_flush_is_of_read_committed(level: str) -> None:
    with connection.cursor() as cursor:
        for begin in (databases.own_transaction, databases.site_transaction):
            with begin(connection):
                cursor.execute("SHOW transaction_isolation")
                assert cursor.fetchone() == ("read committed",)
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == (level,)


def test_a_statement_outside_of_a_transaction_is_sent_again_after_a_conflict() -> None:
    tries = []

    def conflict(execute: Any, sql: str, *args: Any) -> Any:
        tries.append(sql)
        if len(tries) == 1:
            raise OperationalError(1213, "Deadlock")
        return execute(sql, *args)

    post = Post.objects.create(title="x")
    with databases.retrying(), connection.execute_wrapper(conflict):
        assert Post.objects.get() == post
        assert len(tries) == 2
        tries.clear()
        with pytest.raises(OperationalError), transaction.atomic():
            Post.objects.get()
