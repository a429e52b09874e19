"""What each step of a flush takes of the processor, for each post that was viewed.

The steps are those of `bench_flush`, in a minute's flush and in a full one. With
READTRACK_TEST_CORE=1 it shows the core alone.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from importlib import import_module
from time import process_time
from typing import Any
from unittest.mock import patch

from django.apps import apps
from django.test import override_settings

from readtrack.flush.run import flush
from tests.benchmarks.bench_flush import POSTS, seed, site_settings, sql, view
from tests.benchmarks.measuring import Spent, processor_times, table

REST = "what changed, notes, and the rest"
CORE = {
    "totals": "readtrack.flush.run.write_chunk",
    "sketches of all time": "readtrack.flush.totals.archive_changed",
}
NUMBERS = {
    "by value: two values each": "readtrack.numbers.flush.steps.NumbersSteps.changed",
    "history": "readtrack.numbers.flush.steps.NumbersSteps.in_transaction",
    "visitors of the day": "readtrack.numbers.flush.steps.NumbersSteps.stored",
    "hours of models": "readtrack.numbers.flush.steps.NumbersSteps.finish",
    "hours that expire": "readtrack.numbers.flush.steps.NumbersSteps.full",
    "lists and sums": "readtrack.numbers.flush.steps.NumbersSteps.full_once",
    "categories, authors and ages": "readtrack.numbers.flush.groups.renew",
}


def main(posts: int = POSTS) -> None:
    """Prints the steps of three flushes, in µs of processor time a post."""
    sql("ALTER TABLE site_post SET (fillfactor = 80)")
    seed(posts)
    steps = CORE | (NUMBERS if apps.is_installed("readtrack.numbers") else {})
    flush_changed = partial(flush, only_changed=True)
    every_post = range(1, posts + 1)
    found: dict[str, dict[str, Spent]] = {}
    with override_settings(READTRACK=site_settings(), ALLOWED_HOSTS=["testserver"]):
        flush()
        for _ in range(2):
            view(every_post)
            flush_changed()
        view(every_post)
        found["minute flush, all changed"] = spent_by_step(flush_changed, steps)
        view(every_post)
        found["full flush, all changed"] = spent_by_step(flush, steps)
        found["full flush, nothing changed"] = spent_by_step(flush, steps)
    rows = []
    for step in [*steps, REST]:
        times = [by_step.get(step, Spent(0, 0, 0)) for by_step in found.values()]
        rows.append((step, *(shown(of_flush, posts) for of_flush in times)))
    sums = [Spent(*map(sum, zip(*by_step.values(), strict=True))) for by_step in found.values()]
    rows.append(("all", *(shown(of_flush, posts) for of_flush in sums)))
    title = f"Of a flush of {posts:,} posts, µs a post: all (process, Redis, SQL)"
    table(title, [("", *found), *rows])


def shown(times: Spent, posts: int) -> str:
    """Returns the times as µs a post."""
    parts = ", ".join(f"{time / posts * 1e6:.0f}" for time in times)
    return f"{times.total / posts * 1e6:.0f} ({parts})"


def spent_by_step(work: Callable[[], object], steps: dict[str, str]) -> dict[str, Spent]:
    """Returns what each step of the work takes without the steps within it."""
    clock = _Clock()
    with ExitStack() as patches:
        for step, path in steps.items():
            patches.enter_context(_timed(path, clock, step))
        with clock.within(REST):
            work()
    return {step: Spent(*times) for step, times in clock.times.items()}


class _Clock:
    """Adds processor time to the innermost step that runs."""

    def __init__(self) -> None:
        self.times: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        self._running: list[str] = []
        self._last = Spent(0, 0, 0)
        self._own = 0.0  # processor time of the clock itself

    @contextmanager
    def within(self, step: str) -> Iterator[None]:
        self._mark()
        self._running.append(step)
        try:
            yield
        finally:
            self._mark()
            self._running.pop()

    def _mark(self) -> None:
        began = process_time()
        now = processor_times()
        now = now._replace(process=began - self._own)
        if self._running:
            times = self.times[self._running[-1]]
            for index, (end, start) in enumerate(zip(now, self._last, strict=True)):
                times[index] += end - start
        self._last = now
        self._own += process_time() - began


@contextmanager
def _timed(path: str, clock: _Clock, step: str) -> Iterator[None]:
    """Lets the clock run while the function with this path runs."""
    owner_path, _, name = path.rpartition(".")
    module, _, kind = owner_path.rpartition(".")
    owner: Any = import_module(owner_path if kind[0].islower() else module)
    if not kind[0].islower():
        owner = getattr(owner, kind)
    function = getattr(owner, name)

    @wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        with clock.within(step):
            return function(*args, **kwargs)

    with patch.object(owner, name, timed):
        yield
