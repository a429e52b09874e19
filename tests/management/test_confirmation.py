"""What asks before it changes anything: `readtrack reset`, `erase` and `repartition`."""

import io
import os
import pty
import sys
from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.partitions import COUNT

pytestmark = pytest.mark.django_db


class Terminal:
    """A terminal of which a test types the input."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._outer, inner = pty.openpty()
        self._input = os.fdopen(inner)
        monkeypatch.setattr(sys, "stdin", self._input)

    def type(self, text: str) -> None:
        os.write(self._outer, text.encode())

    def close(self) -> None:
        self._input.close()
        os.close(self._outer)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Lets the input be a terminal."""
    terminal = Terminal(monkeypatch)
    yield terminal
    terminal.close()


@pytest.fixture
def viewed_post() -> Post:
    """Returns a post with three views, of which SQL stores two."""
    post = factories.post(category=factories.category())
    subject = subject_of(post)
    tracker.record(factories.hit(subject))
    tracker.record(factories.hit(subject))
    flush()
    tracker.record(factories.hit(subject))
    return post


def views(post: Post, redis: Redis) -> tuple[int, object]:
    """Returns the views that SQL stores, and the total in Redis."""
    post.refresh_from_db()
    return post.view_count, redis.get(f"views:total:{subject_of(post)}")


def run(*words: object) -> str:
    out = io.StringIO()
    call_command("readtrack", *map(str, words), stdout=out)
    return out.getvalue()


RESET = ("reset", "--model", "site.Post")
one_partition = pytest.mark.skipif(COUNT > 1, reason="keys have tags")


@one_partition
@pytest.mark.parametrize("answer", ["no\n", "y\n", "YES\n", "\n", "\x04"])
def test_any_answer_but_yes_cancels_a_reset(
    viewed_post: Post,
    redis: Redis,
    terminal: Terminal,
    capsys: pytest.CaptureFixture[str],
    answer: str,
) -> None:
    terminal.type(answer)
    with pytest.raises(CommandError, match="Cancelled"):
        run(*RESET)
    assert views(viewed_post, redis) == (2, "3")
    assert "sets 1 object of site.Post to zero" in capsys.readouterr().out


@one_partition
def test_yes_resets(
    viewed_post: Post, redis: Redis, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.type("yes\n")
    assert run(*RESET) == "Reset 1 object of site.Post.\n"
    assert "Lost for good: 3 views" in capsys.readouterr().out
    assert views(viewed_post, redis) in ((0, None), (0, "0"))


@one_partition
@pytest.mark.parametrize("option", ["--no-input", "--noinput"])
def test_a_reset_without_input_does_not_ask_on_a_terminal(
    viewed_post: Post, redis: Redis, terminal: Terminal, option: str
) -> None:
    terminal.type("no\n")
    assert run(*RESET, option) == "Reset 1 object of site.Post.\n"
    assert views(viewed_post, redis) in ((0, None), (0, "0"))


@one_partition
def test_without_a_terminal_nothing_asks(
    viewed_post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("no\n"))
    run(*RESET)
    assert views(viewed_post, redis) in ((0, None), (0, "0"))


@one_partition
def test_a_dry_run_of_a_reset_says_what_would_be_lost(viewed_post: Post, redis: Redis) -> None:
    said = run(*RESET, "--dry-run")
    assert "sets 1 object of site.Post to zero" in said
    assert "Lost for good: 3 views" in said
    assert views(viewed_post, redis) == (2, "3")


def test_a_reset_says_that_a_proxy_shares_the_counts_of_its_model(
    viewed_post: Post, redis: Redis
) -> None:
    said = run("reset", "--model", "site.Headline", "--dry-run")
    assert "1 object of site.Post (whose counts site.Headline shares) to zero" in said


def test_a_dry_run_of_a_reset_counts_the_marks_of_readers(redis: Redis) -> None:
    category = factories.category()
    for reader in (factories.user(), factories.user()):
        tracker.mark_read(reader, [category])
    before = sorted(redis.keys("*"))
    assert "2 marks of readers" in run("reset", "--model", "site.Category", "--dry-run")
    assert sorted(redis.keys("*")) == before


@pytest.fixture
def reader_pk(redis: Redis, settings: Settings) -> int:
    """Returns the primary key of a user of whom Redis has a key, a member and a bit of each kind."""
    settings.READTRACK = {"UNIQUE": "set"}
    post, category, user = factories.post(), factories.category(), factories.user()
    browser = factories.browser(user)
    browser.get(f"/posts/{post.pk}/")
    browser.get(f"/categories/{category.pk}/")
    redis.bitfield("category:x.y:1:seen").set("u32", f"#{user.pk + 1}", 7).execute()
    return int(user.pk)


@one_partition
def test_a_dry_run_of_erase_says_what_erase_then_erases(reader_pk: int, redis: Redis) -> None:
    before = {name: redis.dump(name) for name in redis.keys("*")}
    said = run("erase", reader_pk, "--by", "id", "--dry-run")
    amount = "2 keys, 1 member of sets, 2 bits of bitmaps, 0 rows in SQL and 0 records of parts."
    assert said.rstrip().endswith(amount)
    assert {name: redis.dump(name) for name in redis.keys("*")} == before
    assert run("erase", reader_pk, "--by", "id").startswith(f"Erased {amount}")


@one_partition
def test_erase_asks_first(reader_pk: int, redis: Redis, terminal: Terminal) -> None:
    before = sorted(redis.keys("*"))
    terminal.type("no\n")
    with pytest.raises(CommandError, match="Cancelled"):
        run("erase", reader_pk, "--by", "id")
    assert sorted(redis.keys("*")) == before
    terminal.type("yes\n")
    assert run("erase", reader_pk, "--by", "id").startswith("Erased 2 keys")


@one_partition
@pytest.mark.needs_parts("cluster")
def test_repartition_asks_first(
    viewed_post: Post,
    redis: Redis,
    settings: Settings,
    terminal: Terminal,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sorted(redis.keys("*"))
    settings.READTRACK = {"CLUSTER": {"partitions": 16}}
    terminal.type("no\n")
    with pytest.raises(CommandError, match="Cancelled"):
        run("repartition")
    asked = capsys.readouterr().out
    assert "from 1 to 16 partitions" in asked
    assert run("repartition", "--dry-run").splitlines()[0] in asked
    assert sorted(redis.keys("*")) == before
    assert views(viewed_post, redis) == (2, "3")
    terminal.type("yes\n")
    assert run("repartition").startswith("Moved ")
    assert views(viewed_post, redis) == (3, None)
