"""Takes over the views in a web server's logs: judges lines as live hits are judged, by the times
of the log.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import (
    FieldDoesNotExist,
    MultipleObjectsReturned,
    ObjectDoesNotExist,
    ValidationError,
)
from django.db import DataError, models
from django.http import Http404
from django.urls import Resolver404, get_script_prefix, resolve
from django.utils.translation import get_language_from_path, override
from django.views.generic.detail import DetailView, SingleObjectMixin

from readtrack.conf import conf
from readtrack.doctor.report import counted
from readtrack.flush.run import flush
from readtrack.hits import addresses, exclusions, hit, visitors
from readtrack.imports import ledger, logs
from readtrack.models import FlushRun, Import
from readtrack.subjects import is_counted, subject_of, subject_of_row

LINES = 1_000  # between two looks at the progress
PATIENCE = 200_000  # lines after which the position is stored even if little counted
LIMIT = 500_000  # visits in windows: they take some 100 MB
PATTERNS = 1_000  # of paths that did not resolve, counted one by one
OTHERS = "(others)"
OVERLAP = 60  # s; pieces of a rotated log share less, because requests end in another order
# A log of that many lines with so few addresses may have those of proxies in place of the
# visitors'.
MANY_LINES, FEW_ADDRESSES = 1_000, 10

_NUMBERS = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9]+")


def subject_at(path: str) -> str | None:
    """Returns the subject that the path shows; "" if that object does not exist, None if no view
    says what.
    """
    with override(get_language_from_path(path) or settings.LANGUAGE_CODE):
        try:
            match = resolve("/" + path.removeprefix(get_script_prefix()))
        except Resolver404:
            return None
    # A function, `"app.Model"` or `("app.Model", "argument"[, "field"])`.
    rule: Any = conf.IMPORT_VIEWS.get(match.view_name) or conf.IMPORT_VIEWS.get(match._func_path)
    if callable(rule):
        try:
            obj = rule(path, *match.args, **match.kwargs)
        except (
            ObjectDoesNotExist,
            MultipleObjectsReturned,
            Http404,
            ValidationError,
            ValueError,
            OverflowError,
            DataError,
        ):
            return ""  # a log holds any path, and one that fits no object must not end the import
        if not isinstance(obj, models.Model) or not is_counted(obj.__class__):
            return None
        return "" if obj.pk is None else subject_of(obj)
    if rule:
        label, argument, field = (rule, "pk", "pk") if isinstance(rule, str) else (*rule, "pk")[:3]
        return _found(
            apps.get_model(label)._default_manager.all(),
            field=field,
            value=match.kwargs.get(argument),
        )
    view = getattr(match.func, "view_class", None)
    if not (isinstance(view, type) and issubclass(view, DetailView)):
        return None
    instance: Any = view(**getattr(match.func, "view_initkwargs", {}))
    if instance.queryset is None and instance.model is None:
        return None  # it finds its objects by code, with a request that we do not have
    pk, slug = (match.kwargs.get(name) for name in (instance.pk_url_kwarg, instance.slug_url_kwarg))
    field, value = (instance.slug_field, slug) if pk is None else ("pk", pk)
    return _found(SingleObjectMixin.get_queryset(instance), field=field, value=value)


def _found(queryset: "models.QuerySet[Any]", *, field: str, value: Any) -> str | None:
    model = queryset.model
    if value is None or not is_counted(model) or "\0" in str(value):
        return None
    try:
        with suppress(FieldDoesNotExist):  # a field of a related model
            column: Any = model._meta.pk if field == "pk" else model._meta.get_field(field)
            value = column.clean(value, None)
        pk = queryset.filter(**{field: value}).values_list("pk", flat=True).first()
    except (ValidationError, ValueError):
        return None  # also what no column of that kind can hold
    return "" if pk is None else subject_of_row(model, pk)


@dataclass
class Recent:
    """Counts hits in windows of `life` seconds, of which it remembers LIMIT."""

    life: float
    forgotten: int = 0  # entries dropped within their window, because there were too many
    _windows: OrderedDict[int, tuple[float, int]] = field(
        default_factory=OrderedDict
    )  # the oldest first

    def hit(self, *names: str, at: float) -> int:
        """Counts a hit at that time (seconds). Returns the number of hits in the window, which the
        first one begins.
        """
        name = hash(names)  # 8 bytes for a pair: two in a million million are taken for one
        # Servers write a line when its response ends, so a time may be a little before one that was
        # seen.
        while (oldest := next(iter(self._windows.values()), None)) is not None:
            is_over = abs(at - oldest[0]) >= self.life  # or of another log, which began later
            if not is_over and (name in self._windows or len(self._windows) < LIMIT):
                break
            self._windows.popitem(last=False)
            self.forgotten += not is_over
        started, count = self._windows.get(name, (at, 0))
        if abs(at - started) >= self.life:
            del self._windows[name]
            started, count = at, 0
        self._windows[name] = (started, count + 1)
        return count + 1


@dataclass(kw_only=True)
class Importer:
    """One run over one or more files, which share windows and subjects."""

    form: str = "combined"
    fields: Mapping[str, str] = field(default_factory=dict)  # for JSON: where the log keeps what
    since: datetime | None = None
    until: datetime | None = None
    count_robots: bool = False  # counts lines of a log without user agents, whoever asked
    dry_run: bool = False
    progress: Callable[[int], object] = int  # called with the bytes just read

    def __post_init__(self) -> None:
        self.report = ledger.Report()
        self._parse = logs.parser(self.form, self.fields)
        self._subject = lru_cache(maxsize=200_000)(subject_at)
        self._rates, self._views = (Recent(life or 1) for life in (conf.RATE_WINDOW, conf.WINDOW))
        self._batch = ledger.Batch()
        self._addresses: Counter[str] = (
            Counter()
        )  # of new lines that show an object, as long as there are few

    def run(self, paths: Sequence[str]) -> ledger.Report:
        """Imports the files. Going on after a kill, or doing it all again, counts every line once."""
        with ExitStack() as stack:
            files = [logs.LogFile(stack.enter_context(Path(path).open("rb"))) for path in paths]
            # A shell sorts access.log before access.log.1, but windows reach from an older file
            # into the next one.
            begins = {
                file: line.at.timestamp()
                for file in files
                if (line := self._parse(file.first.strip()))
            }
            files = sorted(
                (one for one in files if one.first), key=lambda one: begins.get(one, float("inf"))
            )
            for file in files:
                file.identify(dry_run=self.dry_run)
                if file.lost:
                    lost = f"Redis lost its data during an earlier import; {counted(file.lost, 'byte')} passed over."
                    self.report.notes.append(f"{file.name}: {lost}")
            new = (index for index, file in enumerate(files) if file.digest_at(file.position + 1))
            # The windows of the last known file reach into the first new one.
            if known := max(0, next(new, len(files) + 1) - 1):
                self.report.notes.append(
                    f"{counted(known, 'log')} imported before, with nothing new."
                )
                self.progress(sum(file.read() for file in files[:known]))
            if files[known:] and not self.dry_run:
                # a Redis that was restored from before the last flush catches up with SQL first
                flush()
            records = {record.source: record for record in Import.objects.filter(until__gt=0)}
            for file in files[known:]:
                self._take(file, records)
                records[file.record.source] = file.record
        self._note(files[known:])
        return self.report

    def _take(self, file: logs.LogFile, others: Mapping[str, Import]) -> None:
        """Takes over one file. Notes other files that have lines of the same times."""
        lines, read, unsaved, end, is_over = file.lines(), 0, 0, 0, False
        while not is_over:
            some = list(islice(lines, LINES))
            for raw, end in some:
                is_new = end > file.position  # others only move the windows
                reason = self._judge(file, raw, is_new=is_new)
                if reason or not is_new:
                    self.report.skipped[reason if is_new else "imported before"] += 1
            self.report.read += len(some)
            self.progress(file.read() - read)
            read, unsaved, is_over = file.read(), unsaved + len(some), len(some) < LINES
            if is_over or self._batch.views.total() >= ledger.VIEWS or unsaved >= PATIENCE:
                batch, self._batch, unsaved = self._batch, ledger.Batch(), 0
                if not self.dry_run and end > file.record.position:
                    self._add(file, batch, position=end)
        if file.is_damaged:
            self.report.notes.append(f"{file.name} is damaged after what was read.")
        for source, other in others.items():
            since, until = max(file.record.since, other.since), min(file.record.until, other.until)
            if source != file.record.source and until - since >= OVERLAP:
                first, last = (
                    datetime.fromtimestamp(time, timezone.utc) for time in (since, until)
                )
                times = f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
                advice = "If they are pieces of one log, lines count twice; --since and --until leave times out."
                self.report.notes.append(
                    f"{file.name} and {other.name} both have lines of {times}. {advice}"
                )

    def _add(self, file: logs.LogFile, batch: ledger.Batch, *, position: int) -> None:
        """Adds the batch to the counts. Reports the views that an object could not take."""
        refused = ledger.add(file.record, batch, position=position, digest=file.state.hexdigest())
        for subject, views in refused.items():
            self.report.counted -= views
            reason = f"{file.name}: {counted(views, 'view')} of {subject} refused, because"
            bound = f"its count is no number below {ledger.MOST_VIEWS:,}."
            self.report.refuse(f"{reason} {bound}", views=views)

    def _judge(self, file: logs.LogFile, raw: bytes, *, is_new: bool) -> str:
        """Puts a new line into the batch if it counts. Returns the reason if it does not count, or
        "".
        """
        line = self._parse(raw)
        if line is None:
            return "malformed"
        if (self.since and line.at < self.since) or (self.until and line.at >= self.until):
            return "outside the times"
        second, record = int(line.at.timestamp()), file.record
        record.since, record.until = min(second, record.since or second), max(second, record.until)
        if reason := hit.refusal(line.method, line.status, {"HTTP_USER_AGENT": line.agent}):
            return reason
        subject = self._subject(line.path)
        if subject:
            return self._visit(line, subject, is_new=is_new)
        if subject is None and is_new:
            # Without numbers, and without characters that a terminal obeys.
            path, found = _NUMBERS.sub("…", line.path)[:80], self.report.not_resolved
            pattern = (
                path
                if path.isprintable()
                else "".join(char if char.isprintable() else "?" for char in path)
            )
            found[pattern if pattern in found or len(found) < PATTERNS else OTHERS] += 1
        return "" if subject is None else "no such object"

    def _visit(self, line: logs.Line, subject: str, *, is_new: bool) -> str:
        address = (
            line.forwarded and addresses.network(line.address, line.forwarded)
        ) or line.address
        if not address or (line.agent is None and not self.count_robots):
            return "no agent" if address else "no address"
        if is_new and len(self._addresses) <= FEW_ADDRESSES:
            self._addresses[address] += 1
        if conf.EXCLUDE and exclusions.is_excluded_line(line.path, address):
            return "excluded"
        at, visitor = line.at.timestamp(), visitors.logged(address, line.agent or "", at=line.at)
        # As record.lua decides for live hits.
        if conf.RATE_LIMIT and self._rates.hit(visitor.fallback_id, at=at) > conf.RATE_LIMIT:
            return "rate"
        if self._views.hit(visitor.fallback_id, subject, at=at) > 1:
            return "repeat"
        if is_new:
            self.report.counted += 1
            self._batch.add(subject, visitor=visitor.id, at=line.at)
        return ""

    def _note(self, files: Sequence[logs.LogFile]) -> None:
        """Notes what may make the counts wrong."""
        note, lines = self.report.notes.append, self._addresses.total()
        if lines >= MANY_LINES and len(self._addresses) <= FEW_ADDRESSES:
            found = f"{counted(lines, 'line')} of {', '.join(sorted(self._addresses))} and of no other address"
            note(f"{found}. If that is a proxy's, people with the same browser are one visitor.")
        if forgotten := self._views.forgotten:
            note(
                f"{counted(forgotten, 'visit')} forgotten within the window, so reloads may count as views."
            )
        first = None if self.until else FlushRun.objects.order_by("started").first()
        if first and any(file.record.until >= int(first.began.timestamp()) for file in files):
            goes_on = f"The log goes on after {first.began:%Y-%m-%d %H:%M} UTC."
            note(f"{goes_on} If views were counted live by then, give --until that moment.")
