"""MODELS: models that are not the site's to change are counted like Tracked ones, in a
table of the app.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from readtrack import receivers, reports, tracker
from readtrack.flush.run import flush
from readtrack.models import SubjectCount
from readtrack.sql import raising, row_counts
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import counted_models, is_counted, subject_of
from tests.imports import weblogs
from tests.site.models import (
    Category,
    Gadget,
    Gizmo,
    Instruction,
    Journal,
    Manual,
    Note,
    Publication,
    Shelf,
)
from tests.support import counts, factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])

COUNTED = {"MODELS": {"site.Gadget": {"counted": True}, "site.manual": {"counted": True}}}
NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture(autouse=True)
def counted(settings: Settings) -> None:
    settings.READTRACK = {
        "MODELS": {
            **COUNTED["MODELS"],
            "site.Gadget": {"counted": True, "news_for": ["category", "shelves"]},
        }
    }
    receivers.connect()


KINDS: dict[str, Callable[[], Any]] = {
    "whole number": lambda: Manual.objects.create(title="A"),
    "UUID": lambda: Gadget.objects.create(name="A"),
    "child": lambda: Gizmo.objects.create(name="A"),
}


@pytest.fixture(params=list(KINDS.values()), ids=list(KINDS))
def obj(request: pytest.FixtureRequest) -> Any:
    """Returns a row of each kind of model in turn."""
    return request.param()


def held(obj: Any) -> tuple[int, int] | None:
    """Returns the counts that SQL stores."""
    return (
        SubjectCount.objects.filter(pk=subject_of(obj))
        .values_list("view_count", "visitor_count")
        .first()
    )


def test_a_page_of_such_a_model_counts_and_shows_its_views(redis: Redis) -> None:
    manual, browser = Manual.objects.create(title="A"), factories.browser()
    for _ in range(2):
        assert browser.get(f"/manuals/{manual.pk}/").status_code == 200
    assert redis.get(f"views:total:site.manual:{manual.pk}") == "1"


@pytest.mark.needs_parts("numbers")
def test_its_views_are_stored_with_history_settled_lifted_and_reset(obj: Any, redis: Redis) -> None:
    from readtrack.numbers.models import History

    counts.view(obj, obj, obj)
    assert flush().written == 1
    assert held(obj) == (3, 3)
    assert History.objects.get(subject=subject_of(obj)).views == 3
    assert flush().written == 0
    redis.flushdb()
    counts.view(obj, obj)
    flush(only_changed=True)
    assert held(obj) == (5, 5)
    redis.set(f"views:total:{subject_of(obj)}", 1)
    assert flush().lifted == 1
    assert redis.get(f"views:total:{subject_of(obj)}") == "5"
    tracker.reset_views(obj)
    assert held(obj) in {None, (0, 0)}
    counts.view(obj)
    flush()
    assert held(obj) == (1, 1)
    assert reports.views([obj]) == {obj: 1}


@pytest.mark.usefixtures("database")
def test_each_count_is_raised_for_itself_and_none_is_lowered() -> None:
    gadget = Gadget.objects.create(name="A")
    for new, expected in [
        ((5, 5), (5, 5)),
        ((9, 1), (9, 5)),
        ((1, 9), (9, 9)),
        ((1, 1), (9, 9)),
        ((2**62, 0), (2**62, 9)),
    ]:
        raising.write(Gadget, {gadget.pk: RowCounts(*new)})
        assert held(gadget) == expected


@pytest.mark.usefixtures("database")
def test_a_write_that_comes_second_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two flushes read the row before either writes it."""
    gadget = Gadget.objects.create(name="A")
    monkeypatch.setattr(
        row_counts, "stored", lambda model, pks: dict.fromkeys(pks, RowCounts(0, 0))
    )
    for new in ((10, 5), (9, 6), (8, 4)):
        raising.write(Gadget, {gadget.pk: RowCounts(*new)})
    assert held(gadget) == (10, 6)


@pytest.mark.usefixtures("database")
def test_a_write_says_what_it_raised_what_stores_more_and_what_is_missing() -> None:
    low, high = (Manual.objects.create(title="A") for _ in range(2))
    raising.write(Manual, {low.pk: RowCounts(1, 0), high.pk: RowCounts(50, 0)})
    written = raising.write(Manual, dict.fromkeys([low.pk, high.pk, 999], RowCounts(7, 0)))
    assert (list(written.raised), written.ahead, list(written.missing)) == (
        [low.pk],
        [high.pk],
        [999],
    )
    assert row_counts.stored(Manual, [low.pk, high.pk, 999]) == {
        low.pk: RowCounts(7, 0),
        high.pk: RowCounts(50, 0),
    }
    assert SubjectCount.objects.count() == 2


@pytest.mark.needs_parts("numbers")
def test_a_deleted_object_leaves_nothing(obj: Any, redis: Redis) -> None:
    from readtrack.numbers.models import History

    counts.view(obj)
    flush()
    subject = subject_of(obj)
    obj.delete()
    assert not SubjectCount.objects.exists()
    assert not History.objects.filter(subject=subject).exists()
    assert not redis.exists(f"views:total:{subject}")


def test_views_of_a_row_that_is_gone_become_no_row(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.flush.totals.ORPHAN_PATIENCE", 0)
    manual = Manual.objects.create(title="A")
    counts.view(manual)
    Manual.objects.all()._raw_delete("default")
    assert flush().orphans == 1
    assert not SubjectCount.objects.exists()
    flush()
    assert not redis.keys("views:total:*")


def test_children_share_the_counts_of_the_model_that_is_named() -> None:
    gizmo = Gizmo.objects.create(name="A")
    counts.view(gizmo)
    assert subject_of(gizmo) == subject_of(Gadget.objects.get()) == f"site.gadget:{gizmo.pk}"
    assert reports.views([gizmo, Gadget.objects.get()]) == {gizmo: 1, Gadget.objects.get(): 1}
    assert [is_counted(model) for model in (Gadget, Gizmo, Manual, Instruction, Category)] == [
        True
    ] * 4 + [False]
    assert Gadget in counted_models()
    assert Gizmo not in counted_models()


def test_a_tracked_child_of_a_model_that_is_named_keeps_its_own_columns(settings: Settings) -> None:
    settings.READTRACK = {
        "MODELS": {"site.Publication": {"counted": True}, "site.Post": {"counted": True}}
    }
    journal, other = Journal.objects.create(name="A"), Publication.objects.create(name="B")
    counts.view(journal, other, factories.post())
    flush()
    assert Journal.objects.get().view_count == 1
    assert [row.subject for row in SubjectCount.objects.all()] == [f"site.publication:{other.pk}"]


@pytest.mark.needs_parts("numbers")
def test_a_model_that_is_named_no_more_is_left_alone(settings: Settings) -> None:
    from readtrack.numbers.loading import load
    from readtrack.numbers.scope import Scope

    manual = Manual.objects.create(title="A")
    counts.view(manual)
    flush()
    settings.READTRACK = {}
    assert flush().written == 0
    assert load(Scope.parse({}), ["over-time"]).chart.total.views == 0  # type: ignore[union-attr]
    settings.READTRACK = COUNTED
    assert reports.views([manual]) == {manual: 1}


# Reports


@pytest.mark.needs_parts("numbers")
def test_reports_take_them_like_any_other(noon: Any) -> None:
    from readtrack.numbers import reports as numbers_reports
    from readtrack.numbers.loading import load
    from readtrack.numbers.scope import Scope

    manual, gadget, post = (
        Manual.objects.create(title="A"),
        Gadget.objects.create(name="B"),
        factories.post(),
    )
    counts.view(manual, gadget, gadget, post)
    tracker.refresh_trending()
    assert reports.views([manual, gadget, post]) == {manual: 1, gadget: 2, post: 1}
    assert reports.visitors([manual, gadget]) == {manual: 1, gadget: 2}
    assert numbers_reports.visitors_together([gadget]) == 2
    assert {trend.obj: trend.views for trend in reports.trending()} == {
        manual: 1,
        gadget: 2,
        post: 1,
    }
    assert [
        sum(point.views for point in numbers_reports.series(of)) for of in (manual, Gadget, None)
    ] == [
        1,
        2,
        4,
    ]
    flush()
    assert [
        sum(point.views for point in numbers_reports.series(of)) for of in (manual, Gadget, None)
    ] == [
        1,
        2,
        4,
    ]
    assert numbers_reports.funnel(manual)[0].count == 1
    shown = load(Scope.parse({}), ["over-time", "most-viewed"])
    assert shown.chart
    assert (shown.chart.total.views, shown.entries[0].subject, shown.entries[0].now.views) == (
        4,
        subject_of(gadget),
        2,
    )


@pytest.mark.needs_parts("numbers")
def test_the_dashboard_shows_them(admin_client: Client) -> None:
    from readtrack.numbers.loading import load
    from readtrack.numbers.scope import Scope

    gadget = Gadget.objects.create(name="B")
    counts.view(gadget)
    flush()
    found = load(Scope.parse({}), ["over-time", "most-viewed"])
    assert found.chart
    assert [(found.objects[one.subject], one.now.views) for one in found.entries] == [(gadget, 1)]
    assert found.chart.total.views == 1
    assert admin_client.get("/admin/readtrack/dashboard/").status_code == 200


@pytest.mark.parametrize("is_counted_in_table", [True, False])
def test_the_most_viewed_of_a_model_or_of_a_queryset_come_first(
    *, is_counted_in_table: bool
) -> None:
    make: Any = (
        (lambda: Manual.objects.create(title="A")) if is_counted_in_table else factories.post
    )
    rows = [make() for _ in range(4)]
    counts.view(rows[0], rows[2], rows[2], rows[3], rows[3], rows[3])
    flush()
    model = type(rows[0])
    assert reports.most_viewed(model) == [rows[3], rows[2], rows[0]]
    assert reports.most_viewed(model, 1) == [rows[3]]
    assert reports.most_viewed(model.objects.exclude(pk=rows[3].pk), 1) == [rows[2]]
    assert reports.most_viewed(model.objects.none()) == []


def test_the_most_viewed_are_found_behind_many_that_a_queryset_leaves_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [Manual.objects.create(title=str(number)) for number in range(5)]
    raising.write(Manual, {row.pk: RowCounts(10 - number, 0) for number, row in enumerate(rows)})
    monkeypatch.setattr("readtrack.store.scripts.SLICE", 2)
    few, at_end = Manual.objects.filter(title__in=["3", "4"]), rows[3:]
    with CaptureQueriesContext(connection) as queries:
        assert reports.most_viewed(few, 2) == at_end
    assert len(queries) == 3  # the keys, their counts, the rows
    monkeypatch.setattr(row_counts, "FEW", 1)
    assert reports.most_viewed(few, 2) == at_end


def test_the_most_viewed_of_a_model_without_counts_is_an_error() -> None:
    with pytest.raises(TypeError, match="Category has no counts"):
        reports.most_viewed(Category)


# Pages


def test_a_page_of_them_takes_one_trip_and_one_query(
    wire: Wire, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    manuals = [Manual.objects.create(title="A") for _ in range(5)]
    counts.view(*manuals)
    flush()
    with wire.counted() as trips, django_assert_num_queries(1):
        assert set(reports.views(manuals).values()) == {1}
    assert trips == [1]


def test_while_sql_is_down_they_show_what_redis_has_if_that_is_all(redis: Redis) -> None:
    manual = Manual.objects.create(title="A")
    counts.view(manual)
    flush()

    def fail(*args: Any) -> None:
        raise OperationalError("SQL is down")

    with connection.execute_wrapper(fail):
        assert reports.views([manual]) == {manual: 1}
        redis.flushdb()
        counts.view(manual)
        with pytest.raises(OperationalError, match="SQL is down"):
            reports.views([manual])


def test_while_redis_is_down_all_come_with_one_query(
    settings: Settings, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    manuals, gadgets = ([make() for _ in range(3)] for make in list(KINDS.values())[:2])
    counts.view(*manuals, *gadgets)
    flush()
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": NOWHERE}}
    with django_assert_num_queries(1):
        assert set(reports.views([*manuals, *gadgets]).values()) == {1}
    assert set(reports.visitors(manuals).values()) == {1}


# News


@pytest.fixture
def read(counted: None) -> Category:
    """Returns a category that a reader has read."""
    category = factories.category()
    tracker.mark_read(factories.user(pk=77), [category])
    return category


def is_unread(category: Any) -> bool:
    return bool(reports.unread_counts(User.objects.get(pk=77), [category])[category])


def test_a_new_row_is_news_on_commit_for_what_the_setting_names(read: Category) -> None:
    with transaction.atomic():
        Gadget.objects.create(name="A", category=read)
        assert not is_unread(read)
    assert is_unread(read)


def test_a_row_that_is_rolled_back_edited_or_of_another_category_is_no_news(read: Category) -> None:
    with transaction.atomic():
        Gadget.objects.create(name="A", category=read)
        transaction.set_rollback(True)
    Gadget.objects.create(name="A", category=factories.category())
    gadget = Gadget.objects.create(name="B")
    gadget.category = None
    gadget.save()
    assert not is_unread(read)


def test_a_new_child_is_news_where_its_parent_would_be(read: Category) -> None:
    Gizmo.objects.create(name="A", category=read)
    assert is_unread(read)


def test_a_row_that_is_linked_is_news_there() -> None:
    shelf, user = Shelf.objects.create(code="x"), factories.user()
    tracker.mark_read(user, [shelf])
    Gadget.objects.create(name="A").shelves.add(shelf)
    assert reports.unread(user, [shelf]) == {shelf}
    tracker.mark_read(user, [shelf])
    shelf.gadget_set.add(Gadget.objects.create(name="B"))
    assert reports.unread(user, [shelf]) == {shelf}


def test_publishing_takes_them_and_waits_in_sql_while_redis_is_down(
    read: Category, settings: Settings
) -> None:
    gadget = Gadget(name="A", category=read)
    with override_settings(CACHES={"default": {**settings.CACHES["default"], "LOCATION": NOWHERE}}):
        tracker.publish([gadget])
    assert not is_unread(read)
    tracker.resend()
    assert is_unread(read)


def test_publishing_what_is_news_for_nothing_is_an_error() -> None:
    with pytest.raises(
        TypeError,
        match="Manual is news for nothing; name the fields in its news_for or in that of READ",
    ):
        tracker.publish([Manual(pk=1)])
    with pytest.raises(
        TypeError, match="Note is news for nothing"
    ):  # which is Tracked, but has no category
        tracker.publish([Note(pk=1)])
    with pytest.raises(TypeError, match="User has no read state"):
        tracker.publish_to([factories.user()], [factories.post()])


def test_a_setting_that_names_no_link_of_a_model_fails_no_save(settings: Settings) -> None:
    settings.READTRACK = {"MODELS": {"site.Manual": {"news_for": ["title"]}}}
    receivers.connect()
    assert Manual.objects.create(title="A").pk


def test_an_object_that_carries_dots_itself_may_be_published(settings: Settings) -> None:
    settings.READTRACK = {"MODELS": {"site.Manual": {"read_state": True}}}
    manual, user = Manual.objects.create(title="A"), factories.user()
    tracker.mark_read(user, [manual])
    tracker.publish([manual])
    assert reports.unread(user, [manual]) == {manual}


@pytest.mark.needs_parts("numbers")
def test_a_killed_flush_leaves_count_and_history_together(monkeypatch: pytest.MonkeyPatch) -> None:
    manual = Manual.objects.create(title="A")
    counts.view(manual)

    def fail(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr("readtrack.numbers.sql.history.store", fail)
    with pytest.raises(RuntimeError, match="killed"):
        flush()
    assert held(manual) is None
    monkeypatch.undo()
    flush()
    assert held(manual) == (1, 1)


# Moving in


@pytest.mark.needs_parts("imports")
def test_logs_import_their_views_once(tmp_path: Path) -> None:
    manual = Manual.objects.create(title="A")
    log = weblogs.write(
        tmp_path / "access.log",
        [
            weblogs.line(f"/manuals/{manual.pk}/", address=f"192.0.2.{number}", after=number)
            for number in range(3)
        ],
    )
    for _ in range(2):
        call_command("readtrack", "import", log, verbosity=0)
    assert held(manual) == (3, 3)
    assert reports.views([manual]) == {manual: 3}
