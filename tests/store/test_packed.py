"""The command that is made of a packed one is the command that counts the view."""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.hits.visitors import Visitor
from readtrack.parts import Effect
from readtrack.store import counting, effects, keys, packed, pools
from tests.support import factories
from tests.support.rows import each_row

pytestmark = pytest.mark.one_server("commands of a cluster are not packed before they are sent")

AT = datetime(2026, 11, 20, 11, 59, tzinfo=timezone.utc)
ANN, BOB = Visitor("a" * 16), Visitor("b" * 16)
NEW = Visitor("n" * 16, "f" * 16, "n:1:signature")
USER = Visitor("u" * 16, "c" * 16, kind="user")
VALUES = (("channel", "search"), ("referrer", "suchen.example"))

# Two hits with the same form: what differs in them has the same lengths.
ALIKE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "visitors with a cookie": ({"visitor": ANN}, {"visitor": BOB}),
    "new visitors": (
        {"visitor": NEW},
        {"visitor": NEW._replace(id="m" * 16, fallback_id="g" * 16)},
    ),
    "users": ({"visitor": USER}, {"visitor": USER._replace(id="v" * 16, fallback_id="d" * 16)}),
    "visitors of a day": (
        {"visitor": ANN._replace(kind="day")},
        {"visitor": BOB._replace(kind="day")},
    ),
    "reports": ({"visitor": ANN, "is_report": True}, {"visitor": BOB, "is_report": True}),
    "seen pages": (
        {"visitor": ANN, "is_report": True, "is_seen": True},
        {"visitor": BOB, "is_report": True, "is_seen": True},
    ),
    "cookies that came back": (
        {"visitor": ANN, "is_report": True, "stand_in": "s" * 16},
        {"visitor": BOB, "is_report": True, "stand_in": "t" * 16},
    ),
    "an id within the other": (
        {"visitor": Visitor("aaaa", "aa", "aaaa:1:x")},
        {"visitor": Visitor("site", "po", "site:1:x")},
    ),
    "values": (
        {"visitor": ANN, "dimensions": VALUES},
        {"visitor": BOB, "dimensions": (("channel", "é\1\2"), ("referrer", "x"))},
    ),
}


def words(call: Any) -> Sequence[bytes]:
    """Returns the words of the call's command, as the server gets them."""
    return pools.words(pools.packed_command(call.command()))


@each_row("name", [*ALIKE])
def test_a_packed_command_has_the_same_words(name: str) -> None:
    first, second = ALIKE[name]
    forms = packed._forms_at(AT, keys.prefix(), "site.post").by_shape
    numbers = []
    for subject, values in (("site.post:12", first), ("site.post:%s", second)):
        hit = factories.hit(subject, at=AT, **values)
        packed.count_views(hit)  # the first of its shape may have no form yet
        call = packed.count_views(hit)
        assert call.packed
        assert words(call) == words(counting.count_views(hit))
        numbers.append(len(forms))
    assert numbers[0] == numbers[1] > 0


def test_an_effect_without_keys_is_a_word_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Effect] = []
    monkeypatch.setattr(effects, "makers", lambda _label: [lambda _hit, _subject: tuple(found)])
    hit = factories.hit("site.post:1", at=AT + timedelta(hours=2), visitor=ANN)
    packed.count_views(hit)  # the first of its shape may have no form yet
    assert packed.count_views(hit).packed
    found.append(Effect("of_a_part", (), 7))
    for _ in range(2):
        call = packed.count_views(hit)
        assert words(call) == words(counting.count_views(hit))
    assert call.packed


def test_few_shapes_have_a_form() -> None:
    at = AT + timedelta(hours=1)
    hits = [
        factories.hit(f"site.post:{'a' * length}", at=at, visitor=ANN)
        for length in range(1, packed.MOST_SHAPES + 3)
    ]
    assert not any(packed.count_views(hit).packed for hit in hits)
    calls = [packed.count_views(hit) for hit in hits]
    assert [bool(call.packed) for call in calls] == [True] * packed.MOST_SHAPES + [False] * 2
    assert [*map(words, calls)] == [words(counting.count_views(hit)) for hit in hits]


@each_row(
    "values",
    [
        {"visitor": Visitor("\1" * 4)},
        {"visitor": Visitor("é")},
        {"visitor": ANN, "views": ("site.post:é",)},
        {"visitor": ANN, "views": ("site.post:1", "site.post:2")},
        {"visitor": ANN, "views": ("rubbish",)},
        {"visitor": ANN, "views": ("site.post",)},
    ],
)
def test_other_hits_are_packed_as_they_are(values: dict[str, Any]) -> None:
    hit = factories.hit("site.post:1", at=AT, **{"views": ("site.post:1",), **values})
    for _ in range(2):  # the first of its shape may have no form yet
        call = packed.count_views(hit)
        assert not call.packed
        assert call.command() == counting.count_views(hit).command()


def test_another_minute_model_or_prefix_has_other_forms(settings: Settings) -> None:
    later = AT + timedelta(minutes=1)
    for at, subject in ((AT, "site.post:1"), (later, "site.post:1"), (AT, "site.news:1")):
        hit = factories.hit(subject, at=at, visitor=ANN)
        packed.count_views(hit)
        assert words(packed.count_views(hit)) == words(counting.count_views(hit))
    settings.READTRACK = {**settings.READTRACK, "PREFIX": "ä%(id)s:"}
    hit = factories.hit("site.post:1", at=AT, visitor=ANN)
    packed.count_views(hit)
    assert words(packed.count_views(hit)) == words(counting.count_views(hit))
    assert b"views:total" in words(packed.count_views(hit))[7]


def test_a_server_that_forgot_the_script_counts_the_view(redis: Redis) -> None:
    hit = factories.hit("site.post:1", visitor=NEW, dimensions=VALUES)
    packed.count_views(hit)
    assert packed.count_views(hit).packed
    redis.script_flush()
    assert tracker.record(hit).counted
    assert not tracker.record(hit).counted
    assert redis.get(keys.total("site.post:1")) == "1"
