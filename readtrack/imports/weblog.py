"""Takes over the views in a web server's logs: judged as live hits are, by the times of the log."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from itertools import islice

from django.utils.translation import gettext, ngettext

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.hits import visitors
from readtrack.hits.hit import judged
from readtrack.imports import ledger
from readtrack.imports.backfill import Batch
from readtrack.imports.lines import Line, parser
from readtrack.imports.pieces import Log, LogLine, Piece, piece, unfinished
from readtrack.imports.urls import Objects, Target, Urls
from readtrack.imports.windows import LogDeduplicator
from readtrack.models import FlushRun
from readtrack.numerals import exact
from readtrack.store import imports

PATTERNS = 1_000  # of paths that did not resolve, told apart
LONGEST_PATTERN = 80  # characters of such a pattern
OTHERS = "(others)"

_NUMBERS = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9]+")


@dataclass(slots=True)
class Report:
    """Of `lines`, so many `counted`; every other one is in one of the rest."""

    lines: int = 0
    counted: int = 0
    known: int = 0  # imported before
    malformed: int = 0
    outside: int = 0  # of the times that were asked for, or inside another piece of the same log
    gone: int = 0  # the object of the path does not exist
    skipped: Counter[str] = field(default_factory=Counter)  # by reason, as of a live hit
    unresolved: Counter[str] = field(default_factory=Counter)  # by pattern of path
    since: datetime | None = None
    until: datetime | None = None
    notes: list[str] = field(default_factory=list)

    def see(self, at: datetime) -> None:
        """Widens the report's times."""
        self.since = min(at, self.since or at)
        self.until = max(at, self.until or at)

    def miss(self, path: str) -> None:
        """A path whose view does not say what it shows."""
        pattern = _pattern(path)
        self.unresolved[pattern if pattern in self.unresolved or len(self.unresolved) < PATTERNS else OTHERS] += 1


@lru_cache(maxsize=1024)
def _pattern(path: str) -> str:
    """The path without its numbers. A visitor chose its characters, and a terminal obeys some."""
    return "".join(char if char.isprintable() else "?" for char in _NUMBERS.sub("…", path)[:LONGEST_PATTERN])


LINES = 1_000  # judged together, so that their objects are looked up together
PATIENCE = 200_000  # lines after which the position is kept even though little counted
LATEST = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to read the logs, and what of them."""

    form: str = "combined"
    fields: Mapping[str, str] = field(default_factory=dict)  # for JSON: where the log keeps what
    log: str = ""  # name of the log that all files are pieces of, whose overlaps are passed over
    since: datetime | None = None
    until: datetime | None = None
    dry_run: bool = False


class Importer:
    """One run over one or more files, which share their windows and what was looked up."""

    def __init__(self, options: Options, *, progress: Callable[[int], object] = lambda read: None) -> None:
        """`progress` is called with the number of bytes just read."""
        self.options = options
        self.report = Report()
        self._progress = progress
        self._parse = parser(options.form, options.fields)
        self._urls, self._objects, self._windows = Urls(), Objects(), LogDeduplicator()
        self._batch = Batch()

    def run(self, paths: Sequence[str]) -> Report:
        """Imports the files. Going on after a kill, or doing it all again, counts every line once.

        Raises OSError for a file that cannot be read, ledger.ImportConflictError, redis.RedisError or django.db.Error.
        """
        logs = [Log(path) for path in paths]
        try:
            # The windows go on from one file to the next, and a shell sorts access.log before access.log.1.
            ordered = sorted((log for log in logs if log.first()), key=self._begins)
            found = [self._piece(log) for log in ordered]
            pieces = unfinished(found)
            self._pass_over([one for one in found if one not in pieces])
            if pieces and not self.options.dry_run:
                flush()  # a Redis restored from before the last flush catches up with SQL first
            for one in pieces:
                self._take(one)
        finally:
            for log in logs:
                log.close()
        self._note()
        return self.report

    def _begins(self, log: Log) -> datetime:
        line = self._parse(log.first().strip())
        return line.at if line else LATEST

    def _piece(self, log: Log) -> Piece:
        found = piece(log, name=self.options.log, dry_run=self.options.dry_run)
        if found.lost:
            message = ngettext(
                "%(name)s: Redis lost its data during an earlier import; %(lost)s byte is passed over.",
                "%(name)s: Redis lost its data during an earlier import; %(lost)s bytes are passed over.",
                found.lost,
            )
            self.report.notes.append(message % {"name": log.name, "lost": exact(found.lost)})
        return found

    def _pass_over(self, pieces: Sequence[Piece]) -> None:
        """Counts the lines of logs that hold nothing new."""
        for one in pieces:
            known = sum(1 for _ in one.log.lines())
            self._progress(one.log.read)
            self.report.lines += known
            self.report.known += known
        if pieces:
            message = ngettext(
                "%(count)s log was imported before and holds nothing new.",
                "%(count)s logs were imported before and hold nothing new.",
                len(pieces),
            )
            self.report.notes.append(message % {"count": exact(len(pieces))})

    def _take(self, piece: Piece) -> None:
        """Reads one file, batch by batch."""
        lines, read, unsaved, end = piece.log.lines(), 0, 0, 0
        while some := list(islice(lines, LINES)):
            self._judge(piece, some)
            self._progress(piece.log.read - read)
            read, end, unsaved = piece.log.read, some[-1].end, unsaved + len(some)
            if self._batch.is_full or unsaved >= PATIENCE:
                self._save(piece, end)
                unsaved = 0
        self._save(piece, end)
        if not self.options.dry_run:
            imports.finish(piece.record.source)
        if piece.log.is_damaged:
            self.report.notes.append(gettext("%(name)s is damaged after what was read.") % {"name": piece.log.name})

    def _save(self, piece: Piece, position: int) -> None:
        batch, self._batch = self._batch, Batch()
        if not self.options.dry_run and position > piece.record.position:
            ledger.add(piece.record, batch, position=position, digest=piece.log.digest)

    def _judge(self, piece: Piece, some: Sequence[LogLine]) -> None:
        """Puts into the batch what counts of these lines. Those imported before only move the windows."""
        wanted: list[tuple[Line, Target, Report]] = []
        self.report.lines += len(some)
        for raw, end in some:
            report = self.report if end > piece.position else Report()
            self.report.known += report is not self.report
            line = self._parse(raw)
            target = self._target(piece, line, report=report)
            if line is not None and target is not None:
                wanted.append((line, target, report))
        subjects = self._objects.subjects(target for _, target, _ in wanted)
        for line, target, report in wanted:
            self._count(line, subjects[target], report=report)

    def _target(self, piece: Piece, line: Line | None, *, report: Report) -> Target | None:
        """What the line asks for; None where it cannot count, and the report then says why."""
        if line is None:
            report.malformed += 1
            return None
        piece.see(line.at)
        report.see(line.at)
        if not self._is_wanted(piece, line.at):
            report.outside += 1
            return None
        if reason := judged(method=line.method, status=line.status, agent=line.agent, is_anonymous=True):
            report.skipped[reason] += 1
            return None
        target = self._urls.target(line.path)
        if target is None:
            report.miss(line.path)
        return target

    def _is_wanted(self, piece: Piece, at: datetime) -> bool:
        since, until = self.options.since, self.options.until
        if (since and at < since) or (until and at >= until):
            return False
        return not any(since <= at <= until for since, until in piece.elsewhere)

    def _count(self, line: Line, subject: str, *, report: Report) -> None:
        if not subject:
            report.gone += 1
            return
        visitor = visitors.logged(line.address, line.agent or "", at=line.at)
        if reason := self._windows.refusal(visitor.fallback_id, subject, line.at.timestamp()):
            report.skipped[reason] += 1
            return
        report.counted += 1
        if report is self.report:
            self._batch.add(subject, visitor=visitor.id, at=line.at)

    def _note(self) -> None:
        """Says what may make the counts wrong."""
        if self._windows.forgotten:
            message = ngettext(
                "%(visits)s visit was forgotten within its window, so its reloads count as views.",
                "%(visits)s visits were forgotten within their window, so their reloads count as views.",
                self._windows.forgotten,
            )
            self.report.notes.append(message % {"visits": exact(self._windows.forgotten)})
        first = FlushRun.objects.order_by("started").values_list("started", flat=True).first()
        if first and self.report.until and self.report.until >= buckets.now(first) and not self.options.until:
            message = gettext(
                "The log goes on after %(start)s. If views were counted live by then, give --until that moment."
            )
            self.report.notes.append(message % {"start": f"{buckets.now(first):%Y-%m-%d %H:%M} UTC"})
