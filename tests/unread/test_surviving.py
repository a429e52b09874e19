"""What readers have read, and what is new to them, after Redis or SQL has lost its data."""

from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings
from pytest_django import Settings
from redis import Redis

from readtrack import reports, scheduled, tracker
from readtrack.doctor.report import examine
from readtrack.flush import read_state as keeping
from readtrack.flush.run import flush
from readtrack.models import FlushRun, PendingPublication, ReaderNumber, ReadState
from readtrack.sql import read_states, reader_numbers
from readtrack.store import erasure, keys, read_state, scripts
from readtrack.store.connection import connect
from readtrack.store.read_state import copies
from readtrack.subjects import subject_of
from tests.site.models import Category
from tests.support import factories
from tests.support.asking import ask_again
from tests.support.interference import dump, restore

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])

FORMS = [
    {},
    {"DOTS": {"form": "sequence"}},
    {"DOTS": {"readers": "ordinal"}},
    pytest.param(
        {"DOTS": {"form": "sequence", "readers": "ordinal"}, "CLUSTER": {"partitions": 16}},
        marks=pytest.mark.needs_parts("cluster"),
    ),
]


@pytest.fixture(params=FORMS, ids=str)
def form(request: pytest.FixtureRequest, settings: Settings) -> dict[str, Any]:
    settings.READTRACK = request.param
    read_state.begin(0)
    return dict(request.param)


@pytest.fixture
def categories() -> list[Category]:
    return [factories.category() for _ in range(5)]


def lose(redis: Redis) -> None:
    """Empties Redis. A process of the site may ask at once whether the site is new."""
    redis.flushdb()
    ask_again()


def copied() -> set[str]:
    return set(ReadState.objects.values_list("full_subject", flat=True))


@pytest.mark.usefixtures("form", "database")
def test_what_was_read_is_read_after_redis_lost_its_data(
    categories: list[Category], redis: Redis
) -> None:
    ann, bob = factories.user(), factories.user()
    tracker.mark_unread(categories)
    tracker.mark_read(ann, categories[:3])
    tracker.mark_read(bob, categories[2:])
    flush(only_changed=True)
    lose(redis)
    tracker.mark_read(ann, categories)  # nothing is marked
    assert reports.unread(ann, categories) == set()  # no dots while they are not known
    flush(only_changed=True)
    assert reports.unread(ann, categories) == {*categories[3:]}
    assert reports.unread(bob, categories) == {*categories[:2]}
    assert reports.unread(factories.user(), categories) == {*categories}


def test_the_numbers_of_new_items_come_back(
    categories: list[Category], redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence"}}
    user = factories.user()
    tracker.mark_unread(categories)
    tracker.mark_read(user, categories)
    for _ in range(3):
        tracker.mark_unread(categories[:1])
    flush()
    lose(redis)
    flush()
    counts = reports.unread_counts(user, categories)
    assert [counts[category] for category in categories] == [3, 0, 0, 0, 0]


@pytest.mark.usefixtures("form", "database")
def test_news_that_sql_has_no_copy_of_lights_its_dot(
    categories: list[Category], redis: Redis
) -> None:
    user = factories.user()
    tracker.mark_read(user, categories)
    flush()
    factories.post(category=categories[0])
    tracker.mark_unread([categories[1]])
    lose(redis)
    flush()
    assert reports.unread(user, categories) == {*categories[:2]}


@pytest.mark.usefixtures("form")
def test_news_that_is_published_while_nothing_is_restored_waits(
    categories: list[Category], redis: Redis
) -> None:
    user = factories.user()
    tracker.mark_read(user, categories)
    flush()
    lose(redis)
    factories.post(category=categories[0])
    tracker.mark_read(user, [categories[0]])  # nothing is marked either
    assert PendingPublication.objects.filter(sent=None).exists()
    flush()
    assert reports.unread(user, categories) == {categories[0]}


@pytest.mark.usefixtures("form")
def test_an_older_snapshot_is_brought_up_to_date(categories: list[Category], redis: Redis) -> None:
    user, other = factories.user(), factories.user()
    tracker.mark_unread(categories)
    tracker.mark_read(user, categories)
    flush()
    snapshot = dump(redis)
    tracker.mark_unread(categories[:2])
    tracker.mark_read(other, categories)
    flush()
    restore(redis, snapshot)
    flush(only_changed=True)
    assert reports.unread(user, categories) == {*categories[:2]}
    assert reports.unread(other, categories) == set()


def test_a_reader_who_got_anothers_ordinal_from_a_snapshot_has_read_nothing(
    categories: list[Category], redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}}
    early, late = factories.user(), factories.user()
    tracker.mark_unread(categories)
    snapshot = dump(redis)
    tracker.mark_read(early, categories)
    flush()
    restore(redis, snapshot)
    tracker.mark_read(late, categories[:1])  # under the number that `early` has in SQL
    flush()
    tracker.mark_read(late, categories[4:])
    assert reports.unread(early, categories) == set()
    assert reports.unread(late, categories) == {*categories[:4]}


def has_shared_ordinals(redis: Redis) -> bool:
    """Returns True if two readers have one ordinal, in Redis or in SQL."""
    in_redis = [redis.hvals(keys.readers(tag)) for tag in keys.tags()]
    in_sql = [*ReaderNumber.objects.values_list("tag", "number")]
    return any(len({*one}) < len(one) for one in in_redis) or len({*in_sql}) < len(in_sql)


@pytest.mark.parametrize(
    "partitions",
    [
        pytest.param(1, marks=pytest.mark.one_server("has one partition")),
        pytest.param(16, marks=pytest.mark.needs_parts("cluster")),
    ],
)
def test_readers_who_come_after_a_snapshot_was_restored_share_no_ordinals(
    partitions: int, categories: list[Category], redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}, "CLUSTER": {"partitions": partitions}}
    read_state.begin(0)
    for _ in range(3):
        tracker.mark_read(factories.user(), categories)
        flush()
        snapshot = dump(redis)
        lost, last = (factories.user() for _ in range(2))
        tracker.mark_read(lost, categories)
        flush(only_changed=True)
        restore(redis, snapshot)
        tracker.mark_read(last, categories[:1])
        flush(only_changed=True)
        assert not has_shared_ordinals(redis)
        lose(redis)
        flush()
        tracker.mark_read(last, categories[1:2])
        assert reports.unread(lost, categories) == set()
        assert reports.unread(last, categories) == {categories[0], *categories[2:]}
        assert not has_shared_ordinals(redis)


@pytest.mark.one_server("in one of several partitions only one of the two readers has a number")
def test_an_ordinal_that_two_snapshots_gave_is_nobodys_any_more(
    categories: list[Category], redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}}
    read_state.begin(0)
    ann, bob = factories.user(), factories.user()
    flush()
    snapshot = dump(redis)  # it knows the last flush, so nothing shows that it is an older one
    tracker.mark_read(ann, categories[:2])
    for tag in keys.tags():
        read_states.store_readers(tag)  # by a flush that is killed then
    restore(redis, snapshot)
    tracker.mark_read(bob, categories[2:])
    for _ in range(2):
        flush(only_changed=True)
        assert not has_shared_ordinals(redis)
        assert reports.unread(ann, categories) == {*categories}
        assert reports.unread(bob, categories) == {*categories}
        lose(redis)
        flush()
    tracker.mark_read(ann, categories[:1])
    assert reports.unread(ann, categories) == {*categories[1:]}
    assert reports.unread(bob, categories) == {*categories}


@pytest.mark.parametrize("is_lost", [False, True])
def test_readers_who_share_an_ordinal_since_an_earlier_version_start_unread(
    categories: list[Category], redis: Redis, settings: Settings, *, is_lost: bool
) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}}
    read_state.begin(0)
    ann, bob, cid = (factories.user() for _ in range(3))
    for user in (ann, bob, cid):
        tracker.mark_read(user, categories)
    flush()
    for tag in keys.tags():
        names = [str(read_state.field(str(user.pk))) for user in (ann, bob)]
        number = redis.hget(keys.readers(tag), names[0])
        if number is not None:
            redis.hset(keys.readers(tag), names[1], number)
            ReaderNumber.objects.filter(tag=tag, name=names[1]).update(number=number)
    if is_lost:
        lose(redis)
    flush()
    assert not has_shared_ordinals(redis)
    assert reports.unread(ann, categories) == {*categories}
    assert reports.unread(bob, categories) == {*categories}
    assert reports.unread(cid, categories) == set()


def test_ordinals_that_sql_has_no_reads_of_yet_come_back(
    categories: list[Category], redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}}
    read_state.begin(0)
    scripts.run_all(*read_state.number(["ann", "bob"]))
    flush()
    lose(redis)
    tracker.mark_read(factories.user(), categories)  # nothing is marked, and no ordinal given
    flush()
    scripts.run_all(*read_state.number(["cid"]))
    assert not has_shared_ordinals(redis)
    assert {redis.hlen(keys.readers(tag)) for tag in keys.tags()} == {3}


def test_news_that_a_replica_never_got_is_sent_again(
    categories: list[Category], redis: Redis
) -> None:
    user = factories.user()
    tracker.mark_read(user, categories)
    flush()
    snapshot = dump(redis)
    tracker.mark_unread(categories[:1])
    restore(redis, snapshot)  # it knows of the last flush, so nothing else shows the loss
    assert reports.unread(user, categories) == set()
    scheduled.flush_changed()
    assert reports.unread(user, categories) == {categories[0]}


def test_news_that_a_snapshot_lacks_is_sent_again_to_a_large_category(
    categories: list[Category], redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "MOST_BYTES_EACH_TIME", 100)
    user = factories.user(pk=8_000)
    tracker.mark_read(user, categories)
    flush()
    snapshot = dump(redis)
    tracker.mark_unread(categories[:1])
    restore(redis, snapshot)
    flush(only_changed=True)
    assert reports.unread(user, categories) == {categories[0]}


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_the_number_of_new_items_is_never_too_high_however_often_redis_is_lost(
    categories: list[Category], redis: Redis, settings: Settings, *, has_snapshot: bool
) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence"}}
    user = factories.user()
    tracker.mark_read(user, categories)
    flush()
    snapshot = dump(redis)
    factories.post(category=categories[0])
    tracker.mark_unread([categories[0]])
    for _ in range(3):
        if has_snapshot:
            restore(redis, snapshot)
            ask_again()
        else:
            lose(redis)
        flush(only_changed=True)
        assert reports.unread_counts(user, categories)[categories[0]] == 2


def test_an_older_backup_of_sql_gets_new_copies(categories: list[Category], redis: Redis) -> None:
    user = factories.user()
    tracker.mark_read(user, categories[:1])
    flush()
    backup = [*ReadState.objects.all()]
    runs = [*FlushRun.objects.all()]
    tracker.mark_read(user, categories)
    flush()
    ReadState.objects.all().delete()
    FlushRun.objects.all().delete()
    ReadState.objects.bulk_create(backup)
    FlushRun.objects.bulk_create(runs)
    flush(only_changed=True)
    lose(redis)
    flush()
    assert reports.unread(user, categories) == set()


def test_a_new_site_shows_dots_at_once_and_asks_sql_once(
    categories: list[Category],
    redis: Redis,
    new_redis: None,
    django_assert_num_queries: Any,
) -> None:
    user = factories.user()
    with django_assert_num_queries(1):
        assert reports.unread(user, categories) == {*categories}
    with django_assert_num_queries(0):
        assert reports.unread(user, categories) == {*categories}


def test_a_large_state_is_copied_by_full_flushes_only(
    categories: list[Category], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "MOST_BYTES_EACH_TIME", 100)
    user, far = factories.user(pk=5), factories.user(pk=8_000)
    flush()  # the first one is a full one
    tracker.mark_read(user, categories[:1])
    tracker.mark_read(far, categories[1:2])
    flush(only_changed=True)
    assert copied() == {f"site.category:{categories[0].pk}"}
    flush()
    assert copied() == {f"site.category:{category.pk}" for category in categories[:2]}


def test_a_large_state_keeps_no_other_change_from_sql(
    categories: list[Category], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "MOST_BYTES_EACH_TIME", 100)
    monkeypatch.setattr(copies, "CHANGES_AT_ONCE", 1)
    flush()
    user, far = factories.user(pk=5), factories.user(pk=8_000)
    tracker.mark_read(far, categories[:2])
    tracker.mark_read(user, categories[2:])
    flush(only_changed=True)
    assert copied() == {f"site.category:{category.pk}" for category in categories[2:]}


@pytest.mark.one_server("asks the only partition, or begins with one")
def test_a_flush_that_has_no_time_leaves_the_latest_changes_to_the_next_ones(
    categories: list[Category], redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = factories.user()
    flush()
    monkeypatch.setattr(keeping, "COPYING_SECONDS", 0)
    monkeypatch.setattr(copies, "CHANGES_AT_ONCE", 2)
    for category in categories:
        tracker.mark_read(user, [category])
    for number in (2, 4, 5):
        flush(only_changed=True)
        assert copied() == {f"site.category:{category.pk}" for category in categories[:number]}
        assert copies.backlog("").number == 5 - number
        if number == 4:
            [finding] = [each for each in examine() if each.name == "read state"]
            assert finding.message.startswith("1 change of read state not copied to SQL yet")
    lose(redis)
    flush()
    assert reports.unread(user, categories) == set()


def test_news_leaves_the_outbox_even_if_a_flush_has_no_time(
    categories: list[Category], redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = factories.user()
    flush()
    monkeypatch.setattr(keeping, "COPYING_SECONDS", 0)
    monkeypatch.setattr(copies, "CHANGES_AT_ONCE", 1)
    tracker.mark_read(user, categories)
    for category in categories:
        factories.post(category=category)
    flush(only_changed=True)
    assert not PendingPublication.objects.exists()
    lose(redis)
    flush()
    assert reports.unread(user, categories) == {*categories}


@pytest.mark.needs_parts("cluster")
def test_each_partition_has_a_share_of_the_time(
    redis: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 4}}
    read_state.begin(0)
    monkeypatch.setattr(keeping, "COPYING_SECONDS", 0)
    monkeypatch.setattr(copies, "CHANGES_AT_ONCE", 1)
    user = factories.user()
    tracker.mark_read(user, [factories.category() for _ in range(40)])
    flush(only_changed=True)
    tags = {row.tag for row in ReadState.objects.all()}
    assert (tags, len(copied())) == ({*keys.tags()}, 4)


def test_new_readers_are_copied_in_portions(
    categories: list[Category], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}}
    read_state.begin(0)
    flush()
    for _ in range(5):
        tracker.mark_read(factories.user(), categories[:1])
    monkeypatch.setattr(scripts, "SLICE", 2)
    with monkeypatch.context() as short_of_time:
        short_of_time.setattr(keeping, "COPYING_SECONDS", 0)
        flush(only_changed=True)
        assert ReaderNumber.objects.count() == 2
    flush(only_changed=True)
    assert ReaderNumber.objects.count() == 5


@pytest.mark.needs_parts("numbers")
def test_counts_do_not_wait_for_read_state(
    categories: list[Category], monkeypatch: pytest.MonkeyPatch
) -> None:
    from readtrack.numbers.models import History

    post = factories.post()
    tracker.record(factories.hit(subject_of(post)))
    counts_by_then = []

    def watch(tags: Any) -> None:
        post.refresh_from_db()
        counts_by_then.append((post.view_count, History.objects.exists()))

    monkeypatch.setattr(keeping, "restore", watch)
    flush()
    assert counts_by_then == [(1, True)]


@pytest.mark.needs_parts("numbers")
def test_numbers_of_readers_stay_while_read_state_is_not_restored(
    categories: list[Category], redis: Redis
) -> None:
    from readtrack.numbers.models import ReaderHistory

    tracker.mark_read(factories.user(), categories)
    flush()
    flush()
    assert {row.readers for row in ReaderHistory.objects.all()} == {1}
    lose(redis)
    flush()
    assert {row.readers for row in ReaderHistory.objects.all()} == {1}


@pytest.mark.one_server("asks the only partition, or begins with one")
def test_what_did_not_change_is_copied_once(
    categories: list[Category], django_assert_num_queries: Any
) -> None:
    user = factories.user()
    tracker.mark_read(user, categories)
    assert keeping.store([""], {}, is_full=True) == 5
    tracker.mark_read(user, categories)
    with django_assert_num_queries(0):
        assert keeping.store([""], {}, is_full=True) == 0
    tracker.mark_read(factories.user(), categories[:1])
    assert keeping.store([""], {}, is_full=True) == 1


@pytest.mark.one_server("asks the only partition, or begins with one")
def test_a_change_during_a_copy_is_copied_by_the_next_flush(categories: list[Category]) -> None:
    tracker.mark_read(factories.user(), categories[:1])
    subject = f"site.category:{categories[0].pk}"
    [[[copy], _]] = copies.copies([subject], most_bytes=10_000)
    tracker.mark_read(factories.user(), categories[:1])
    copies.forget_changes([copy])
    assert copies.oldest_changes("").subjects == [subject]


@pytest.mark.parametrize("family", ["read", "seen"])
def test_two_copies_of_one_publication_are_joined(family: str, settings: Settings) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence" if family == "seen" else "bitmap"}}
    states = {"read": (b"\x81", b"\x42\x01", b"\xc3\x01")}
    states["seen"] = (
        bytes([0, 0, 0, 2, 0, 0, 0, 3]),
        bytes([0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]),
        bytes([0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2]),
    )
    one, other, joined = states[family]
    subject = "site.category:1"
    for state in (one, other):
        assert read_states.store([copies.Copy(subject, family, 7, state)])
    assert read_states._copy(ReadState.objects.get()).state == joined
    assert not read_states.store([copies.Copy(subject, family, 6, one)])  # an older publication
    assert read_states._copy(ReadState.objects.get()).state == joined
    assert read_states.store([copies.Copy(subject, family, 8, one)])
    assert read_states._copy(ReadState.objects.get()).state == one


@pytest.mark.usefixtures("form")
def test_an_erased_user_leaves_the_copies(categories: list[Category], redis: Redis) -> None:
    ann, bob = factories.user(), factories.user()
    for user in (ann, bob):
        tracker.mark_read(user, categories)
    flush()
    assert tracker.erase(ann.pk, is_dry_run=True).copies == 5
    assert tracker.erase(ann.pk).copies == 5
    assert tracker.erase(ann.pk).copies == 0
    lose(redis)
    flush()
    assert reports.unread(ann, categories) == {*categories}
    assert reports.unread(bob, categories) == set()
    assert not ReaderNumber.objects.filter(name=erasure.name_of(ann.pk)).exists()


@pytest.mark.usefixtures("form")
def test_an_erased_user_whom_a_flush_had_copied_leaves_the_copies_by_the_next_flush(
    categories: list[Category], redis: Redis
) -> None:
    ann, bob = factories.user(), factories.user()
    flush()
    tracker.mark_read(ann, categories)
    tracker.mark_read(bob, categories)
    subjects = [subject_of(category) for category in categories]
    copied_before = [next(copies.copies([name], most_bytes=10_000)) for name in subjects]
    tracker.erase(ann.pk)
    for subject, (portion, new_readers) in zip(subjects, copied_before, strict=True):
        reader_numbers.store(keys.tag(subject), new_readers)
        read_states.store(portion)
        copies.forget_changes(portion)
    flush(only_changed=True)
    assert tracker.erase(ann.pk).copies == 0
    assert {row.name for row in ReaderNumber.objects.all()} == {
        name for tag in keys.tags() for name in redis.hkeys(keys.readers(tag))
    }
    lose(redis)
    flush()
    assert reports.unread(ann, categories) == {*categories}
    assert reports.unread(bob, categories) == set()


def test_a_category_with_the_key_of_a_deleted_one_is_unread(
    categories: list[Category], redis: Redis
) -> None:
    user, pk = factories.user(), categories[0].pk
    factories.post(category=categories[0])
    tracker.mark_read(user, categories)
    flush()
    categories[0].delete()
    assert not ReadState.objects.filter(full_subject=f"site.category:{pk}").exists()
    lose(redis)
    flush()
    assert reports.unread(user, [factories.category(pk=pk)]) != set()


@pytest.mark.one_server("asks the only partition, or begins with one")
@pytest.mark.needs_parts("cluster")
def test_the_copies_follow_to_new_partitions(
    categories: list[Category], redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}, "CLUSTER": {"partitions": 1}}
    user = factories.user()
    tracker.mark_read(user, categories)
    flush()
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}, "CLUSTER": {"partitions": 16}}
    call_command("readtrack", "repartition", verbosity=0)
    flush()
    lose(redis)
    flush()
    assert reports.unread(user, categories) == set()


def test_publications_leave_the_outbox_once_sql_has_a_copy(categories: list[Category]) -> None:
    factories.post(category=categories[0])
    assert PendingPublication.objects.exclude(sent=None).count() == 1
    flush(only_changed=True)
    assert not PendingPublication.objects.exists()


def test_publications_wait_while_the_copy_cannot_be_stored(
    categories: list[Category], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "MOST_BYTES_EACH_TIME", -1)
    flush()  # the first one is a full one
    factories.post(category=categories[0])
    flush(only_changed=True)
    assert PendingPublication.objects.exists()


@pytest.mark.one_server("asks the only partition, or begins with one")
def test_the_doctor_tells_of_lost_read_state(categories: list[Category], redis: Redis) -> None:
    def level() -> str:
        [finding] = [each for each in examine() if each.name == "read state"]
        return finding.level

    tracker.mark_read(factories.user(), categories)
    assert level() == "ok"
    connect().zadd(keys.reads_changed(""), {"category:site.category:1:read": 1})
    assert level() == "warning"
    flush()
    assert level() == "ok"
    lose(redis)
    assert level() == "error"
    flush()
    assert level() == "ok"


def test_an_import_waits_until_read_state_is_restored(
    categories: list[Category], redis: Redis
) -> None:
    tracker.mark_read(factories.user(), categories)
    flush()
    lose(redis)
    with pytest.raises(read_states.NotRestoredError):
        read_states.ensure_begun()
    with override_settings(READTRACK={"DOTS": {"start_as_read": True}}):
        user = factories.user()
    flush()
    assert reports.unread(user, categories) == {*categories}
    read_states.ensure_begun()
