"""Frozen clocks, for machines without freezegun: the same functions stand still in the same way."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone, tzinfo
from typing import Any
from unittest.mock import patch

FUNCTIONS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
PACKAGES = ("readtrack", "django")


@contextmanager
def freeze_time(moment: str) -> Iterator[None]:
    """Lets all clocks of this process show that time (UTC). Decorates functions, too.

    As freezegun does, it replaces the functions in every module that has imported them.
    """
    frozen = datetime.fromisoformat(moment).replace(tzinfo=timezone.utc)

    class FrozenDatetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return frozen.astimezone(tz) if tz else frozen.replace(tzinfo=None)

    fakes: dict[Any, Any] = {datetime: FrozenDatetime}
    for name in FUNCTIONS:
        fakes[getattr(time, name)] = _constant(frozen, is_whole=name.endswith("_ns"))
    patches = [patch.object(time, real.__name__, fakes[real]) for real in list(fakes)[1:]]
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] not in PACKAGES:
            continue
        for name, value in list(vars(module).items()):
            if any(value is real for real in fakes):
                patches.append(patch.object(module, name, fakes[value]))
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def _constant(frozen: datetime, *, is_whole: bool) -> Callable[[], float]:
    seconds = frozen.timestamp()
    return lambda: int(seconds * 1_000_000_000) if is_whole else seconds
