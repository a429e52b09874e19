"""A log is imported again after a first import that was wrong, and each line counts once at most."""

import signal
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from django.test.utils import override_settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.flush.resets import reset_model
from readtrack.flush.run import flush
from readtrack.imports import ledger, weblog
from readtrack.imports.ledger import CountedRange, Report
from readtrack.imports.models import Import, ImportedLines
from readtrack.imports.weblog import Importer
from readtrack.numbers import reports as numbers_reports
from readtrack.store import connection
from tests.imports import weblogs
from tests.imports.conftest import Victim, Write
from tests.imports.test_ledger import begin
from tests.imports.weblogs import START, line
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import STRIDE

pytestmark = pytest.mark.django_db(transaction=True)


def take(*paths: str, **options: Any) -> Report:
    return Importer(**options).run(paths)


def views() -> dict[int, int]:
    return dict(Post.objects.values_list("pk", "view_count"))


def visitors(count: int, path: str = "/posts/1/", *, apart: int = 60) -> list[str]:
    """Returns a line of each visitor, so many seconds apart."""
    return [line(path, address=f"192.0.2.{n}", after=n * apart) for n in range(count)]


def test_a_log_in_the_wrong_format_may_be_imported_again(write: Write) -> None:
    factories.post(pk=1)
    path = write(*visitors(10))
    for form in ("json", "w3c", "haproxy"):
        report = take(path, form=form)
        assert (report.counted, report.skipped) == (0, {"malformed": 10})
    assert Import.objects.count() == 0
    assert take(path).counted == 10
    assert views() == {1: 10}


def test_a_log_of_views_that_were_not_explained_may_be_imported_again(write: Write) -> None:
    factories.post(pk=1)
    path = write(*visitors(10, "/posts/1/function/"))
    assert take(path).counted == 0
    rules = {"IMPORTS": {"views": {"tests.site.views.post_page": "site.Post"}}}
    with override_settings(READTRACK=rules):
        assert take(path).counted == 10
        assert take(path) == Report(finished=1)
    assert views() == {1: 10}


def test_a_log_of_objects_that_came_later_may_be_imported_again(write: Write) -> None:
    path = write(*visitors(10))
    assert take(path).skipped == {"no such object": 10}
    factories.post(pk=1)
    assert take(path).counted == 10
    assert views() == {1: 10}


def test_a_log_without_agents_may_be_imported_again(write: Write) -> None:
    factories.post(pk=1)
    path = write(*(text.rpartition(' "-" ')[0] for text in visitors(10)))
    assert take(path).skipped == {"no agent": 10}
    assert take(path, count_robots=True).counted == 10


def test_what_was_added_to_a_log_and_did_not_count_may_be_imported_again(write: Write) -> None:
    factories.post(pk=1)
    lines = [*visitors(5), *visitors(5, "/posts/2/")]
    take(write(*lines[:5]))
    assert take(write(*lines)).counted == 0
    factories.post(pk=2)
    report = take(write(*lines))
    assert (report.counted, report.skipped) == (5, {"imported before": 5})
    assert views() == {1: 5, 2: 5}


@pytest.mark.parametrize(
    "times",
    [
        [(3, 4), (None, None)],
        [(None, 5), (None, None)],
        [(5, None), (None, None)],
        [(2, 4), (6, 8), (None, None)],
        [(2, 6), (4, 8), (0, 10)],
        [(20, 30), (None, None)],
        [(0, 10), (None, None)],
        [(None, 5), (5, None)],
    ],
)
def test_times_that_were_left_out_may_be_imported_later(
    write: Write, times: list[tuple[int | None, int | None]]
) -> None:
    factories.post(pk=1)
    path = write(*visitors(10))

    def at(minute: int | None) -> datetime | None:
        return None if minute is None else START + timedelta(minutes=minute)

    counted = [take(path, since=at(since), until=at(until)).counted for since, until in times]
    assert sum(counted) == 10
    assert views() == {1: 10}
    assert take(path, since=at(times[-1][0]), until=at(times[-1][1])).counted == 0


def test_a_log_whose_times_were_left_out_is_read_once_for_the_same_times(write: Write) -> None:
    factories.post(pk=1)
    path = write(*visitors(10))
    until = START + timedelta(minutes=5)
    assert take(path, until=until).counted == 5
    assert take(path, until=until) == Report(finished=1)


@pytest.mark.parametrize("is_packed", [True, False])
def test_again_counts_the_lines_that_did_not_count(write: Write, *, is_packed: bool) -> None:
    factories.post(pk=1)
    lines = [line(f"/posts/{n % 2 + 1}/", address=f"192.0.2.{n}", after=n * 400) for n in range(40)]
    assert take(write(*lines)).counted == 20
    second = factories.post(pk=2)
    path = write(*lines, name="renamed.log", packed=is_packed)
    assert take(path) == Report(finished=1)
    dry = take(path, again=True, dry_run=True)
    report = take(path, again=True)
    assert report == dry
    assert (report.counted, report.skipped) == (20, {"imported before": 20})
    assert take(path, again=True).counted == 0
    assert take(path) == Report(finished=1)
    assert views() == {1: 20, 2: 20}
    assert reports.visitors([second]) == {second: 20}
    hours = [row.views for row in numbers_reports.series(second, since=START, until=lines_end(40))]
    assert sum(hours) == 20


def lines_end(count: int) -> datetime:
    return START + timedelta(seconds=count * 400)


def test_again_counts_no_reload_of_a_view_that_counted(write: Write) -> None:
    factories.post(pk=1)
    reload_path = "/posts/1/function/"
    path = write(line(), line(reload_path, after=60), line(reload_path, after=7200))
    take(path)
    rules = {"IMPORTS": {"views": {"tests.site.views.post_page": "site.Post"}}}
    with override_settings(READTRACK=rules):
        report = take(path, again=True)
    assert (report.counted, report.skipped) == (1, {"imported before": 1, "repeat": 1})
    assert views() == {1: 2}


def test_again_says_that_views_stay_which_would_not_count_now(write: Write) -> None:
    factories.post(pk=1)
    path = write(*(text.rpartition(' "-" ')[0] for text in visitors(10)))
    take(path, count_robots=True)
    report = take(path, again=True)
    assert report.counted == 0
    (note,) = report.notes
    assert note == (
        "10 views that an earlier import has counted would not count now. They stay. `import --undo`"
        " takes back all that a log has added; then import it again."
    )
    assert views() == {1: 10}


@pytest.mark.parametrize("is_partial", [True, False])
def test_again_counts_everything_that_was_reset_since(write: Write, *, is_partial: bool) -> None:
    posts = [factories.post(pk=1), factories.post(pk=2)]
    path = write(*visitors(10), *visitors(10, "/posts/2/"))
    take(path)
    flush()
    if is_partial:
        tracker.reset_views(posts[0])
    else:
        reset_model(Post)
    assert take(path) == Report(finished=1)
    assert take(path, again=True).counted == (10 if is_partial else 20)
    assert take(path, again=True).counted == 0
    flush()
    assert views() == {1: 10, 2: 10}


def test_batches_note_which_lines_counted(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "VIEWS", 10)
    monkeypatch.setattr(weblog, "LINES_AT_ONCE", 7)
    posts = [factories.post().pk for _ in range(5)]
    log = list(weblogs.day(posts, lines=300))
    report = take(write(*log))
    assert ImportedLines.objects.count() > 5
    counted_ranges = list(ledger.counted_ranges(Import.objects.get()))
    ends = [0]
    for text in log:
        ends.append(ends[-1] + len(text) + 1)
    counted_lines = sum(
        any(one.start <= start < one.end for one in counted_ranges) for start in ends[:-1]
    )
    assert counted_lines == report.counted
    assert {one.start for one in counted_ranges} | {one.end for one in counted_ranges} <= {*ends}
    assert take(write(*log), again=True).counted == 0


def test_lines_that_may_have_counted_never_count_again(redis: Redis) -> None:
    post = factories.post()
    record = Import.objects.create(source="test", name="access.log")
    begin(record, post, after=100)
    redis.flushdb()
    assert ledger.resume(record) == (100, 100)
    (passed_over,) = ledger.counted_ranges(record)
    assert (passed_over.start, passed_over.end) == (0, 100)
    assert 0 < passed_over.redis_time <= connection.server_time()


def test_lines_before_a_restored_position_never_count_again(write: Write) -> None:
    factories.post(pk=1)
    path = write(*visitors(10))
    take(path)
    ImportedLines.objects.all().delete()
    # The database is restored from before the import, and Redis is not.
    nothing = blake2b(digest_size=16).hexdigest()
    Import.objects.update(position=0, intended=0, digest=nothing)
    take(path)
    (only,) = ledger.counted_ranges(Import.objects.get())
    assert only == CountedRange(0, Path(path).stat().st_size, only.redis_time)
    assert take(path, again=True).counted == 0
    assert views() == {1: 10}


@pytest.mark.parametrize("is_same_head", [True, False])
def test_two_logs_with_the_same_first_lines_are_imported_together(
    write: Write, *, is_same_head: bool
) -> None:
    factories.post(pk=1)
    head = ["#Version: 1.0", "#Fields: date time"] if is_same_head else [line("/x/")]
    one = write(*head, *visitors(4), name="one.log")
    two = write(*head, *visitors(9)[4:], name="two.log")
    assert take(one, two).counted == 9
    assert take(one, two) == Report(finished=2)


def test_a_log_and_its_copy_count_once_in_one_import(write: Write) -> None:
    factories.post(pk=1)
    log = visitors(5, apart=7200)
    paths = [write(*log, name=name, packed=name.endswith("gz")) for name in ("a.log", "b.log.gz")]
    report = take(*paths)
    assert (report.counted, report.skipped) == (5, {"imported before": 5})
    assert views() == {1: 5}


def test_an_import_again_that_is_killed_at_every_step_counts_every_line_once(
    victim: Victim, tmp_path: Path
) -> None:
    posts = [factories.post().pk for _ in range(5)]
    path = weblogs.write(tmp_path / "access.log", weblogs.day(posts, lines=300))
    expected = take(path, dry_run=True)
    assert 0 < take(path, until=START + timedelta(seconds=150)).counted < expected.counted
    kills, step = 0, 1
    while (code := victim.run(path, step=step)) == -signal.SIGKILL:
        kills += 1
        step += max(2 * STRIDE, 11)  # each run judges the whole log again
    assert code == 0
    assert kills > 3
    flush()
    assert sum(views().values()) == expected.counted
    assert take(path, again=True).counted == 0
