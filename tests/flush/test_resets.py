"""A reset lasts, even if a flush or a snapshot still holds the old count."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.flush import resets, settling, totals
from readtrack.flush.run import flush
from readtrack.flush.steps import steps_of_parts
from readtrack.hits.visitors import Visitor
from readtrack.models import Archive, FlushRun, Reset, SubjectCount
from readtrack.sql import epochs
from readtrack.sql.faults import Faults
from readtrack.sql.row_counts import RowCounts
from readtrack.store import clock, flush_notes, keys, resetting, scripts, trending
from readtrack.subjects import model_with_label, subject_column, subject_of
from tests.site.models import Manual, Note, Page, Post
from tests.support import factories
from tests.support.counts import view_times as view
from tests.support.interference import dump, restore

pytestmark = pytest.mark.django_db(transaction=True)


def click(post: Post, visitor: str) -> None:
    assert tracker.step(post, "click", visitor=Visitor(visitor))


def counts(post: Post) -> tuple[int, int]:
    row = Post.objects.get(pk=post.pk)
    return row.view_count, row.visitor_count


def views_in_chart(post: Post) -> int:
    from readtrack.numbers.reports import series

    return sum(point.views for point in series(post, hours=24))


@pytest.fixture
def post() -> Post:
    post = factories.post()
    view(post, 5)
    flush()
    return post


def test_both_sides_are_zero_and_count_on_from_there(post: Post, redis: Redis) -> None:
    redis.hset(f"funnel:{subject_of(post)}", "view", 3)
    post.refresh_from_db()
    tracker.reset_views(post)
    assert (post.view_count, post.visitor_count) == counts(post) == (0, 0)
    assert not redis.exists(f"views:total:{subject_of(post)}", f"funnel:{subject_of(post)}")
    post.refresh_from_db()
    assert reports.views([post]) == {post: 0}
    view(post, 2)
    flush()
    assert counts(post) == (2, 2)


def test_a_chunk_that_was_read_before_the_reset_and_is_written_after_it_does_not_stay(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    view(post)
    written = totals._write

    def reset_first(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(totals, "_write", written)
        tracker.reset_views(post)
        view(post)
        done = written(*args, **kwargs)
        assert counts(post) == (6, 6)
        return done

    monkeypatch.setattr(totals, "_write", reset_first)
    flush()
    assert counts(post) == (1, 1)
    assert redis.get(f"views:total:{subject_of(post)}") == "1"


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("views_since", [0, 2])
def test_what_is_written_of_views_from_before_the_reset_does_not_stay_in_the_chart(
    post: Post, monkeypatch: pytest.MonkeyPatch, views_since: int
) -> None:
    view(post)
    written = totals._write

    def reset_first(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(totals, "_write", written)
        tracker.reset_views(post)
        view(post, views_since)
        return written(*args, **kwargs)

    monkeypatch.setattr(totals, "_write", reset_first)
    flush()
    assert views_in_chart(post) == views_since  # before: 6
    flush()
    view(post)
    flush()
    assert views_in_chart(post) == views_since + 1


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("has_history", [True, False])
def test_the_chart_has_no_view_from_before_the_reset_and_needs_no_flush_for_that(
    post: Post, settings: Settings, *, has_history: bool
) -> None:
    settings.READTRACK = {"NUMBERS": {"history": has_history}}
    assert views_in_chart(post) == 5
    tracker.reset_views(post)
    assert views_in_chart(post) == 0
    view(post, 2)
    assert views_in_chart(post) == 2
    flush()
    assert views_in_chart(post) == 2


def test_a_visitor_of_the_day_is_one_after_the_reset_too(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"UNIQUE": "daily"}
    post = factories.post()
    ann = Visitor("a")
    view(post, visitor=ann)
    tracker.reset_views(post)
    redis.delete(f"viewed:{ann.id}:{subject_of(post)}")  # as time does it
    view(post, visitor=ann)
    flush()
    assert counts(post) == (1, 1)


@pytest.mark.needs_parts("numbers")
def test_the_chart_forgets_views_from_before_the_reset_though_a_flush_was_killed(
    post: Post, redis: Redis
) -> None:
    from readtrack.numbers.sql import history

    tracker.reset_views(post)
    view(post)
    flush()
    # As a flush leaves it that began before the reset, and was killed when the row was lowered.
    history.store({subject_of(post): RowCounts(5, 5)}, hour=buckets.hour_index(buckets.now()))
    age(redis, days=1)
    flush()
    assert not resetting.noted_resets()
    assert views_in_chart(post) == 1


@pytest.mark.parametrize("only_changed", [True, False])
def test_an_old_count_written_by_a_flush_that_was_killed_then_goes_with_the_next_one(
    post: Post, redis: Redis, only_changed: bool
) -> None:
    tracker.reset_views(post)
    Post.objects.filter(pk=post.pk).update(view_count=5, visitor_count=4)
    flush(only_changed=only_changed)
    assert counts(post) == (0, 0)


def test_a_flush_that_is_late_to_bring_a_row_down_takes_nothing_that_was_counted_since(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker.reset_views(post)
    Post.objects.filter(pk=post.pk).update(view_count=5)
    read = scripts.run_all

    def be_late(*calls: Any, **kwargs: Any) -> Any:
        found = read(*calls, **kwargs)
        if any(call.script == "totals" for call in calls):
            monkeypatch.undo()
            view(post)
            flush()
        return found

    monkeypatch.setattr(scripts, "run_all", be_late)
    flush()
    assert counts(post) == (1, 1)


def test_a_base_that_was_read_before_the_reset_is_not_added_after_it(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.delete(f"views:total:{subject_of(post)}")
    view(post)
    read = settling.stored_counters

    def reset_then(names: list[str], faults: Faults) -> Any:
        bases = read(names, faults)
        if names:
            tracker.reset_views(post)
            view(post)
        return bases

    monkeypatch.setattr(settling, "stored_counters", reset_then)
    flush()
    monkeypatch.setattr(settling, "stored_counters", read)
    flush()
    assert counts(post) == (1, 1)


def test_a_snapshot_from_before_the_reset_brings_nothing_back(
    post: Post, redis: Redis, redis_url: str
) -> None:
    with Redis.from_url(redis_url) as raw:
        snapshot = {key: raw.dump(key) for key in raw.scan_iter()}
        tracker.reset_views(post)
        flush(only_changed=True)
        raw.flushdb()
        for key, value in snapshot.items():
            raw.restore(key, 0, value)
    flush(only_changed=True)
    assert counts(post) == (0, 0)
    view(post)
    flush(only_changed=True)
    assert counts(post) == (1, 1)


def test_what_was_reset_trends_no_more_where_redis_has_another_clock(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "skew", 300.0)
    other = factories.post()
    for viewed in (post, other):
        tracker.record(factories.hit(subject_of(viewed), at=clock.now()))
    assert len(trending.top_subjects(5, at=clock.now())) == 2
    resets.reset([subject_of(post)])
    assert trending.top_subjects(5, at=clock.now()) == [(subject_of(other), 1)]
    tracker.refresh_trending(at=clock.now())
    assert trending.top_subjects(5, at=clock.now()) == [(subject_of(other), 1)]


def test_views_since_a_reset_survive_a_loss_of_redis(post: Post, redis: Redis) -> None:
    tracker.reset_views(post)
    view(post, 4)
    flush()
    redis.flushdb()
    view(post)
    flush(only_changed=True)
    assert counts(post) == (5, 5)
    assert redis.get(f"views:total:{subject_of(post)}") == "5"


def test_a_snapshot_from_before_the_reset_takes_nothing_that_was_counted_since(
    post: Post, redis: Redis
) -> None:
    snapshot = dump(redis)
    tracker.reset_views(post)
    view(post, 4)
    flush()
    restore(redis, snapshot)
    flush(only_changed=True)
    assert counts(post) == (4, 4)
    view(post)
    flush(only_changed=True)
    assert counts(post)[0] == 5


def test_a_snapshot_from_after_the_reset_takes_nothing_that_was_counted_since(
    post: Post, redis: Redis
) -> None:
    tracker.reset_views(post)
    view(post)
    flush()
    snapshot = dump(redis)
    view(post, 3)
    flush()
    restore(redis, snapshot)
    flush(only_changed=True)
    assert counts(post) == (4, 4)
    assert redis.get(f"views:total:{subject_of(post)}") == "4"


@pytest.mark.needs_parts("numbers")
def test_a_count_that_begins_between_a_restore_and_the_next_flush_stays(
    post: Post, redis: Redis
) -> None:
    subject = subject_of(post)
    other = factories.post()
    click(post, "a")
    click(other, "a")
    flush()
    redis.delete(f"views:total:{subject}", f"funnel:{subject}")
    snapshot = dump(redis)
    for one in (post, other):
        tracker.reset_views(one)
    restore(redis, snapshot)
    view(post)
    click(post, "b")
    flush(only_changed=True)
    assert counts(post)[0] == 1
    assert redis.hgetall(f"funnel:{subject}") == {"view": "1", "click": "1"}
    assert not redis.exists(f"funnel:{subject_of(other)}")


def test_a_flush_that_is_late_to_notice_a_loss_takes_nothing_that_another_one_has_settled(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker.reset_views(post)
    view(post, 4)
    flush()
    redis.flushdb()
    view(post)

    def be_late(tags: Sequence[str]) -> flush_notes.LastFlushes:
        monkeypatch.undo()
        found = flush_notes.last_flushes(tags)
        flush()
        view(post)
        return found

    monkeypatch.setattr(flush_notes, "last_flushes", be_late)
    flush()
    assert counts(post)[0] == 6


def test_a_snapshot_between_the_last_flush_and_the_reset_brings_nothing_back(
    post: Post, redis: Redis
) -> None:
    snapshot = dump(redis)
    tracker.reset_views(post)
    restore(redis, snapshot)
    flush(only_changed=True)
    assert counts(post) == (0, 0)


def test_a_reset_is_not_repeated_on_a_redis_that_remembers_it(post: Post, redis: Redis) -> None:
    tracker.reset_views(post)
    view(post, 2)
    redis.delete("flush:last")  # looks restored
    flush(only_changed=True)
    assert counts(post) == (2, 2)


@pytest.mark.needs_parts("numbers")
def test_after_a_day_the_mark_goes_with_what_may_have_been_archived_late(
    post: Post, redis: Redis
) -> None:
    from readtrack.numbers.models import Breakdown

    subject = subject_of(post)
    tracker.reset_views(post)
    Archive.objects.create(subject=subject, views=5, visitors=5, sketch=b"", hour=1)
    flush()
    assert redis.zscore("views:reset", subject)
    click(post, "a")
    redis.zadd("views:reset", {subject: 1})
    flush()
    assert not redis.exists("views:reset")
    assert not Archive.objects.exists()
    assert Breakdown.objects.get(field="click").count == 1


def age(redis: Redis, *, days: int) -> None:
    """Lets so many days pass since everything that is noted of resets, archives and flushes."""
    microseconds = days * keys.DAY * 1_000_000
    for subject, time in resetting.noted_resets().items():
        redis.zadd(keys.reset(keys.tag(subject)), {subject: time - microseconds})
    Archive.objects.update(hour=F("hour") - 24 * days)
    FlushRun.objects.update(flushed_until=F("flushed_until") - microseconds)


def leave_as_idle(redis: Redis) -> None:
    """Lets subjects be archived, and then leave Redis."""
    flush(must_archive=True)
    age(redis, days=31)
    flush(must_archive=True)


@pytest.mark.parametrize(("idle_days", "days"), [(30, 31), (1, 2)])
def test_a_subject_that_is_idle_after_its_reset_keeps_its_row(
    post: Post, redis: Redis, settings: Settings, idle_days: int, days: int
) -> None:
    settings.READTRACK = {"IDLE_DAYS": idle_days}
    tracker.reset_views(post)
    view(post, 4)
    flush(must_archive=True)
    age(redis, days=days)
    flush(must_archive=True)
    assert counts(post) == (4, 4)
    assert resetting.noted_resets() == {}
    leave_as_idle(redis)
    assert not redis.exists(keys.total(subject_of(post)))
    assert counts(post) == (4, 4)
    view(post)
    flush()
    assert counts(post)[0] == 5


@pytest.mark.needs_parts("numbers")
def test_a_flush_that_is_late_to_end_a_reset_does_not_take_an_idle_subject_for_zero(
    post: Post, redis: Redis
) -> None:
    from readtrack.numbers.models import Breakdown

    tracker.reset_views(post)
    view(post, 4)
    click(post, "a")
    flush(must_archive=True)
    age(redis, days=31)
    read_by_a_late_flush = resetting.noted_resets()
    flush(must_archive=True)
    leave_as_idle(redis)
    assert not redis.exists(keys.total(subject_of(post)), f"funnel:{subject_of(post)}")
    now = Reset.objects.get(subject=subject_of(post)).redis_time
    late_flush = FlushRun(redis_time=now, flushed_until=now)
    steps = steps_of_parts(late_flush, epochs.SqlEpoch(), Faults())
    resets.finish(read_by_a_late_flush, steps, Faults(), now=now)
    assert counts(post) == (4, 4)
    assert Breakdown.objects.get(field="click").count == 1
    assert Archive.objects.get().views == 4


def test_a_post_that_was_reset_and_then_deleted_is_no_error(post: Post, redis: Redis) -> None:
    tracker.reset_views(post)
    post.delete()
    assert flush().error == ""


def test_a_later_reset_outlives_the_end_of_an_earlier_one(post: Post, redis: Redis) -> None:
    redis.zadd("views:reset", {"site.post:0": 5})
    resetting.delete_reset("site.post:0", at=4)
    assert redis.zscore("views:reset", "site.post:0") == 5


@pytest.mark.needs_parts("numbers")
def test_a_reset_deletes_the_rows_of_the_app_for_this_subject_only(post: Post) -> None:
    from readtrack.numbers.models import Breakdown, History
    from readtrack.numbers.sql import history

    other = factories.post()
    for column in (post, other):
        subject = subject_of(column)
        history.store({subject: RowCounts(1, 1)}, hour=1)
        Breakdown.objects.create(subject=subject, kind="funnel", field="view", count=1)
    tracker.reset_views(post)
    for model in (History, Breakdown):
        rows: Any = model
        assert subject_of(other) in {*rows.objects.values_list("subject", flat=True)}
        assert not rows.objects.filter(subject=subject_of(post)).exists()


@pytest.mark.needs_parts("numbers")
def test_a_name_that_is_too_long_for_a_column_can_be_reset() -> None:
    from readtrack.numbers.models import History

    page = Page.objects.create(slug="é" * 90)
    subject = subject_of(page)
    assert len(subject) > 500
    tracker.record(factories.hit(subject))
    flush()
    tracker.record(factories.hit(subject))
    flush(only_changed=True)
    assert Page.objects.get().view_count == 2
    assert History.objects.filter(subject=subject_column(subject)).exists()
    tracker.reset_views(page)
    assert Page.objects.get().view_count == 0
    assert Reset.objects.get().full_subject == subject
    assert subject_column(subject) != subject_column(subject + "a")


def test_a_redis_that_lost_only_the_time_of_the_last_flush_keeps_what_was_counted_since_a_reset(
    post: Post, redis: Redis
) -> None:
    tracker.reset_views(post)
    days_ago = Reset.objects.get().redis_time - 10 * 86_400 * 1_000_000
    Reset.objects.update(redis_time=days_ago)
    redis.zadd("views:reset", {subject_of(post): days_ago})
    flush()
    view(post, 3)
    flush()
    view(post, 2)
    redis.delete("flush:last")
    flush(only_changed=True)
    assert counts(post) == (5, 5)
    assert flush(only_changed=True).kind == FlushRun.Kind.CHANGED


# Whole models


@pytest.fixture
def site(settings: Settings) -> dict[str, Any]:
    """Returns rows of a Tracked model, of one that MODELS counts, and a category, with
    counts and dots.
    """
    settings.READTRACK = {"MODELS": {"site.Manual": {"counted": True, "read_state": True}}}
    rows = {
        "post": factories.post(),
        "manual": Manual.objects.create(title="A"),
        "category": factories.category(),
    }
    for _ in range(3):
        tracker.record(factories.hit(subject_of(rows["post"]), subject_of(rows["manual"])))
    tracker.mark_read(factories.user(), [rows["category"], rows["manual"]])
    flush()
    return rows


def lasting(redis: Redis) -> set[str]:
    """Returns the first parts of the subjects that Redis holds counts or read state of."""
    found = [
        *redis.keys("views:total:*"),
        *redis.keys("views:hll:site*"),
        *redis.keys("category:*"),
    ]
    return {str(name).split(":")[-2 if "views" in str(name) else 1] for name in found}


@pytest.mark.parametrize(
    ("name", "count"), [("site.Post", 1), ("site.manual", 1), ("site.Category", 1)]
)
def test_a_model_is_reset_by_hand(
    site: dict[str, Any], name: str, count: int, redis: Redis, capsys: Any
) -> None:
    model = model_with_label(name)
    assert model
    call_command("readtrack", "reset", model=name)
    assert capsys.readouterr().out == f"Reset 1 object of {model._meta.label}.\n"
    call_command("readtrack", "reset", model=name, verbosity=0)
    assert capsys.readouterr().out == ""
    assert lasting(redis) == {"site.post", "site.manual", "site.category"} - {name.lower()}
    flush()
    stored = {"site.post": Post.objects.get().view_count, "site.manual": site_count("site.manual")}
    assert stored == {label: 0 if label == name.lower() else 3 for label in stored}


def site_count(label: str) -> int:
    return sum(
        SubjectCount.objects.filter(subject__startswith=label).values_list("view_count", flat=True)
    )


def test_counts_that_redis_does_not_hold_are_reset_too(site: dict[str, Any], redis: Redis) -> None:
    redis.flushdb()
    for model in (Post, Manual):
        assert resets.reset_model(model) == 1
    assert (Post.objects.get().view_count, site_count("site.manual")) == (0, 0)


def test_a_row_that_the_models_manager_hides_is_reset_too() -> None:
    Note.objects.create(is_hidden=True, view_count=3, visitor_count=2)
    assert resets.reset_model(Note) == 1
    assert Note._base_manager.get().view_count == 0


@pytest.mark.parametrize("name", ["site.Topix", "site.Publication", "x"])
def test_a_model_without_counts_and_dots_cannot_be_reset(name: str) -> None:
    with pytest.raises(CommandError, match="is no model with counts or read state"):
        call_command("readtrack", "reset", model=name)
    with pytest.raises(CommandError, match="is no model with counts or read state"):
        call_command("readtrack", "reset", "--model", name)


def test_ids_that_are_used_anew_after_djangos_flush_inherit_nothing(
    site: dict[str, Any], redis: Redis
) -> None:
    call_command("flush", interactive=False, verbosity=0)
    assert lasting(redis) == set()
    post, category = factories.post(), factories.category()
    assert reports.views([post]) == {post: 0}
    assert reports.unread(factories.user(), [category]) == {category}
    view(post)
    flush()
    assert counts(post) == (1, 1)


def test_a_migration_or_a_table_with_rows_resets_nothing(
    site: dict[str, Any], redis: Redis
) -> None:
    resets.on_flush(None, using="default", plan=[])
    resets.on_flush(None, using="default")
    assert lasting(redis) == {"site.post", "site.manual", "site.category"}


def test_djangos_flush_is_not_disturbed_without_redis_nor_in_a_sites_own_tests(
    site: dict[str, Any], settings: Settings, monkeypatch: pytest.MonkeyPatch, redis: Redis
) -> None:
    monkeypatch.setattr(keys, "test_prefix", lambda: "test:")
    call_command("flush", interactive=False, verbosity=0)
    monkeypatch.undo()
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    call_command("flush", interactive=False, verbosity=0)
    assert lasting(redis) == {"site.post", "site.manual", "site.category"}


# What has nothing to reset


def test_what_has_no_counts_or_no_read_state_cannot_be_reset_or_made_unread(
    settings: Settings,
) -> None:
    with pytest.raises(TypeError, match="Category has no counts"):
        tracker.reset_views(factories.category())
    with pytest.raises(TypeError, match="Post has no read state"):
        tracker.mark_unread([factories.post()])
    with pytest.raises(TypeError, match="str has no read state"):
        tracker.mark_unread("x")  # type: ignore[arg-type]
