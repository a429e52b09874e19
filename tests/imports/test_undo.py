"""An import is taken back exactly once, however it is disturbed."""

import signal
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.imports import ledger, undo, writing
from readtrack.imports.models import Import, ImportedLines, ImportedViews
from readtrack.imports.weblog import Importer
from readtrack.models import Archive
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import Breakdown
from readtrack.numbers.sql import history
from readtrack.sql import raising
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, keys, scripts
from readtrack.subjects import subject_of
from tests.imports import weblogs
from tests.imports.conftest import Victim, Write
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import STRIDE
from tests.support.interference import dump, restore

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


@pytest.fixture
def posts() -> list[Post]:
    return [factories.post(view_count=10) for _ in range(3)]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "VIEWS", 10)
    monkeypatch.setattr("readtrack.imports.weblog.LINES_AT_ONCE", 20)


def log(tmp_path: Path, posts: list[Post], *, lines: int = 150, name: str = "access.log") -> str:
    day = weblogs.day([post.pk for post in posts], lines=lines)
    return weblogs.write(tmp_path / name, day)


def view(post: Post, visitor: str) -> None:
    assert tracker.record(factories.hit(subject_of(post), visitor=Visitor(visitor))).counted


def totals(posts: list[Post]) -> dict[str, int]:
    calls = [
        counters.totals(portion) for portion in scripts.parted([subject_of(post) for post in posts])
    ]
    answers = scripts.run_all(*calls)
    return {subject: total.views for answer in answers for subject, total in answer.items()}


def numbers() -> dict[str, Any]:
    """Returns the counts in SQL, and the charts of all objects, of the model and of the site."""
    flush()
    since, until = weblogs.START - HOUR, buckets.now() + HOUR
    charts = {}
    for of in (*Post.objects.order_by("pk"), Post, None):
        points = numbers_reports.series(of, since=since, until=until)
        charts[str(of)] = {point.start: point.views for point in points if point.views}
    counts = dict(Post.objects.order_by("pk").values_list("pk", "view_count"))
    return {"counts": counts, "charts": charts}


@pytest.mark.usefixtures("small_batches")
def test_what_a_file_added_is_taken_back_and_nothing_else(
    posts: list[Post], tmp_path: Path
) -> None:
    view(posts[0], "before")
    flush()
    path = log(tmp_path, posts)
    before = numbers()
    report = Importer().run([path])
    assert ImportedViews.objects.count() > 2
    view(posts[0], "after")
    view(posts[1], "after")
    assert numbers() != before
    undone = undo.undo(path)
    assert (undone.views.total(), undone.kept, undone.recent) == (report.counted, {}, 0)
    after = numbers()
    first, second, third = (post.pk for post in posts)
    assert after["counts"] == {first: 12, second: 11, third: 10}
    assert totals(posts)[subject_of(posts[0])] == 12
    assert sum(after["charts"]["None"].values()) == 3
    assert sum(after["charts"][str(posts[2])].values()) == 0
    assert after["charts"][str(Post)] == after["charts"]["None"]
    assert not Import.objects.exists()
    assert not ImportedLines.objects.exists()


@pytest.mark.usefixtures("small_batches")
def test_a_file_that_was_taken_back_may_be_imported_again(
    posts: list[Post], tmp_path: Path
) -> None:
    path = log(tmp_path, posts)
    Importer().run([path])
    imported = numbers()
    undo.undo(path)
    with pytest.raises(ledger.ImportRefusedError, match="was not imported"):
        undo.undo(path)
    Importer().run([path])
    assert numbers() == imported
    undo.undo(path)
    assert set(numbers()["counts"].values()) == {10}


@pytest.mark.usefixtures("small_batches")
def test_of_two_files_one_stays(posts: list[Post], tmp_path: Path) -> None:
    one = log(tmp_path, posts, lines=100, name="one.log")
    Importer().run([one])
    only_one = numbers()
    later = weblogs.day([post.pk for post in posts], lines=100, seed=2, start=weblogs.START + HOUR)
    two = weblogs.write(tmp_path / "two.log", later)
    Importer().run([two])
    undo.undo(two)
    assert numbers() == only_one


def test_an_undo_that_is_killed_at_every_step_takes_everything_back_once(
    victim: Victim, tmp_path: Path, posts: list[Post]
) -> None:
    view(posts[0], "live")
    path = log(tmp_path, posts, lines=50)
    before = numbers()
    assert victim.run(path, step=10**9) == 0
    assert ImportedViews.objects.count() > 1
    kills, step = 0, 1
    while Import.objects.exists():  # the last kill may come when everything is done
        code = victim.run(path, step=step, command="undo")
        assert code in {0, -signal.SIGKILL}
        kills, step = kills + 1, step + STRIDE
        if kills % 3 == 0:
            flush()
    assert kills * STRIDE > 20
    assert numbers() == before
    assert totals(posts)[subject_of(posts[0])] == 11
    assert not Import.objects.exists()


@pytest.mark.usefixtures("small_batches")
def test_a_kill_before_sql_has_it_takes_nothing_back_twice(
    posts: list[Post], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log(tmp_path, posts)
    before = numbers()
    Importer().run([path])

    def die(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("readtrack.numbers.sql.past_hours.lower_hours", die)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                undo.undo(path)
            for number, post in enumerate(posts):
                view(post, f"{buckets.now()} {number}")
            flush()
    undo.undo(path)
    after = numbers()
    assert after["counts"] == {pk: count + 3 for pk, count in before["counts"].items()}
    for post in posts:
        assert sum(after["charts"][str(post)].values()) == 3


def test_a_flush_that_read_older_totals_does_not_bring_them_back(
    posts: list[Post], tmp_path: Path
) -> None:
    path = log(tmp_path, posts)
    view(posts[0], "live")
    before = numbers()
    Importer().run([path])
    flush()
    old_totals = totals(posts)
    old = {post.pk: old_totals[subject_of(post)] for post in posts}
    undo.undo(path)
    # What the other flush writes last.
    raising.write(Post, {pk: RowCounts(count, 0) for pk, count in old.items()})
    hour = buckets.hour_index(buckets.now())
    history.store({subject_of(post): RowCounts(old[post.pk], 0) for post in posts}, hour=hour)
    assert numbers() == before
    assert not numbers_reports.series(posts[1], since=buckets.now() - HOUR, until=buckets.now())[
        -1
    ].views


def test_a_redis_from_before_the_undo_does_not_bring_the_views_back(
    posts: list[Post], tmp_path: Path, redis: Redis
) -> None:
    path = log(tmp_path, posts)
    Importer().run([path])
    flush()
    snapshot = dump(redis)
    undo.undo(path)
    flush()
    restore(redis, snapshot)
    assert set(numbers()["counts"].values()) == {10}
    view(posts[0], "live")
    assert numbers()["counts"][posts[0].pk] == 11


def test_a_redis_that_is_emptied_after_the_undo_changes_nothing(
    posts: list[Post], tmp_path: Path, redis: Redis
) -> None:
    path = log(tmp_path, posts)
    Importer().run([path])
    undo.undo(path)
    redis.flushdb()
    view(posts[0], "live")
    assert numbers()["counts"][posts[0].pk] == 11


def test_a_batch_that_redis_loses_meanwhile_stays_and_is_told(
    posts: list[Post], tmp_path: Path, redis: Redis
) -> None:
    path = log(tmp_path, posts)
    counted = Importer().run([path]).counted
    [batch] = ImportedViews.objects.all()
    undo._announce(batch, [subject_of(post) for post in posts])
    redis.flushdb()
    undone = undo.undo(path)
    assert undone.views.total() == 0
    assert undone.kept.total() == counted
    assert sum(numbers()["counts"].values()) == 30 + counted


def test_objects_that_were_reset_or_deleted_keep_what_came_after(
    posts: list[Post], tmp_path: Path
) -> None:
    path = log(tmp_path, posts)
    Importer().run([path])
    tracker.reset_views(posts[0])
    view(posts[0], "live")
    posts[1].delete()
    undone = undo.undo(path)
    assert undone.views.keys() == {subject_of(posts[2])}
    assert undone.kept.total() > 10
    assert numbers()["counts"] == {posts[0].pk: 1, posts[2].pk: 10}
    _, notes = undo.text_of(undone, dry_run=False)
    assert "set to zero, deleted or renamed" in notes[0]


def test_views_that_a_reset_took_before_they_were_confirmed_are_not_taken_back(
    posts: list[Post], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log(tmp_path, posts[:1])

    def write_and_reset(subjects: Iterable[str]) -> None:
        monkeypatch.undo()
        writing.write_subjects(subjects)
        tracker.reset_views(posts[0])

    monkeypatch.setattr(writing, "write_subjects", write_and_reset)
    counted = Importer().run([path]).counted
    assert counted > 20
    for number in range(20):
        view(posts[0], f"live{number}")
    assert Importer(again=True, dry_run=True).run([path]).counted == counted
    undone = undo.undo(path)
    assert (undone.views, undone.kept.total()) == ({}, counted)
    assert numbers()["counts"][posts[0].pk] == 20


def test_breakdowns_and_archives_of_an_object_outlive_the_note_of_its_undo(
    posts: list[Post], tmp_path: Path, redis: Redis
) -> None:
    path = log(tmp_path, posts)
    Importer().run([path])
    undo.undo(path)
    subject = subject_of(posts[0])
    assert redis.zscore(keys.reset(""), subject)
    flush()
    time, _ = redis.time()
    redis.zadd(keys.reset(""), {subject: (time - 2 * keys.DAY) * 1_000_000})
    kind = keys.hash_kinds()[0]
    Breakdown.objects.create(subject=subject, kind=kind, field="mobile", count=3)
    flush(must_archive=True)
    Archive.objects.get(subject=subject)
    flush()
    assert redis.zscore(keys.reset(""), subject) is None
    assert Breakdown.objects.filter(subject=subject).count() == 1
    assert Archive.objects.filter(subject=subject).count() == 1


def test_recent_hours_of_an_object_are_taken_back_from_redis(
    write: Write, posts: list[Post], redis: Redis
) -> None:
    now, subject = buckets.now(), subject_of(posts[0])
    view(posts[0], "before")
    lines = [
        weblogs.line(
            path=f"/posts/{posts[0].pk}/", start=now - age * HOUR, address=f"192.0.2.{age}"
        )
        for age in (0, 2, 20)
    ]
    path = write(*lines)
    Importer().run([path])
    names = [buckets.hour_bucket(now - age * HOUR) for age in (0, 2, 20)]
    assert redis.hmget(keys.hours(subject), names) == ["2", "1", "1"]
    undo.undo(path)
    assert redis.hmget(keys.hours(subject), names) == ["1", "0", "0"]


def test_a_key_of_another_type_leaves_no_batch_half_taken_back(
    write: Write, posts: list[Post], redis: Redis
) -> None:
    paths = [f"/posts/{post.pk}/" for post in posts]
    path = write(*(weblogs.line(path=path, start=buckets.now()) for path in paths))
    Importer().run([path])
    before = totals(posts)
    redis.set(keys.hours(subject_of(posts[0])), "other")
    undo.undo(path)
    assert totals(posts) == {subject: views - 1 for subject, views in before.items()}


def test_recent_hours_stay_in_the_charts_of_the_model(posts: list[Post], tmp_path: Path) -> None:
    recent = weblogs.day([posts[0].pk], lines=20, start=buckets.now() - 5 * HOUR)
    path = weblogs.write(tmp_path / "recent.log", recent)
    counted = Importer().run([path]).counted
    flush()
    undone = undo.undo(path)
    assert undone.recent == undone.views.total() == counted
    _, notes = undo.text_of(undone, dry_run=False)
    assert "last three days" in notes[0]
    since, until = buckets.now() - 9 * HOUR, buckets.now() + HOUR
    of_object, of_model = (
        sum(point.views for point in numbers_reports.series(of, since=since, until=until))
        for of in (posts[0], Post)
    )
    assert (of_object, of_model) == (0, counted)
    assert numbers()["counts"][posts[0].pk] == 10


def test_a_dry_run_takes_nothing_back(
    posts: list[Post], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log(tmp_path, posts)
    counted = Importer().run([path]).counted
    before = numbers()
    call_command("readtrack", "import", "--undo", path, "--dry-run")
    text = capsys.readouterr().out
    assert text.startswith("Nothing was written.")
    assert f"Would take back {counted} views of 3 objects" in text
    assert numbers() == before
    call_command("readtrack", "import", "--undo", path)
    text = capsys.readouterr().out
    assert f"Took back {counted} views of 3 objects" in text
    assert "Unique visitors stay" in text


def test_a_file_that_is_gone_is_known_by_its_name(posts: list[Post], tmp_path: Path) -> None:
    path = log(tmp_path, posts)
    Importer().run([path])
    Path(path).unlink()
    assert undo.undo(path).views.total() > 10


def test_a_file_that_is_not_known_is_an_error_with_the_names_of_others(
    posts: list[Post], tmp_path: Path, write: Write
) -> None:
    other = write(weblogs.line("/posts/1/"), name="other.log")
    with pytest.raises(CommandError, match="No file was"):
        call_command("readtrack", "import", "--undo", other, verbosity=0)
    path = log(tmp_path, posts)
    Importer().run([path])
    with pytest.raises(CommandError, match=r"other.log was not imported.*access.log"):
        call_command("readtrack", "import", "--undo", other, verbosity=0)
    with pytest.raises(CommandError, match="Name the files"):
        call_command("readtrack", "import", "--undo", verbosity=0)


def test_a_file_that_is_half_taken_back_cannot_be_imported(
    posts: list[Post], tmp_path: Path
) -> None:
    path = log(tmp_path, posts)
    Importer().run([path])
    Import.objects.update(undone_since=buckets.now())
    with pytest.raises(ledger.ImportRefusedError, match="half taken back"):
        Importer().run([path])
    undo.undo(path)
    assert Importer().run([path]).counted > 10


def test_a_list_of_totals_is_taken_back(posts: list[Post], tmp_path: Path) -> None:
    path = tmp_path / "views.csv"
    path.write_text(f"path,views\n/posts/{posts[0].pk}/,500\n/posts/{posts[1].pk}/,7\n")
    call_command("readtrack", "import", "--totals", str(path), verbosity=0)
    assert numbers()["counts"][posts[0].pk] == 510
    undone = undo.undo(str(path))
    assert undone.views.total() == 507
    assert set(numbers()["counts"].values()) == {10}


def test_with_partitions_each_one_is_taken_back(tmp_path: Path, settings: Settings) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 16}}
    posts = [factories.post(view_count=10) for _ in range(8)]
    path = log(tmp_path, posts)
    before = numbers()
    Importer().run([path])
    undo.undo(path)
    assert numbers() == before
