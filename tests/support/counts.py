"""Views of any object, and its counts on both sides."""

from typing import Any

from redis import Redis

from readtrack import tracker
from readtrack.subjects import subject_of
from tests.support import factories


def view(*objs: Any) -> None:
    """Records a view of each object, each by a new visitor."""
    for obj in objs:
        assert tracker.record(factories.hit(subject_of(obj))).counted


def view_times(obj: Any, times: int = 1, **values: Any) -> None:
    """Records that many views of the object, each by a new visitor. `values` are those of the hit."""
    for _ in range(times):
        assert tracker.record(factories.hit(subject_of(obj), **values)).counted


def stored(obj: Any) -> int:
    """Returns the views of the object that SQL stores."""
    return int(type(obj).objects.values_list("view_count", flat=True).get(pk=obj.pk))


def live(redis: Redis, obj: Any) -> int:
    """Returns the views of the object that Redis holds."""
    return int(redis.get(f"views:total:{subject_of(obj)}") or 0)


def remaining_keys(redis: Redis, obj: Any) -> list[str]:
    """Returns those of the object's lasting keys that Redis holds."""
    subject = subject_of(obj)
    return [
        key
        for key in (f"views:total:{subject}", f"views:hll:{subject}", f"funnel:{subject}")
        if redis.exists(key)
    ]
