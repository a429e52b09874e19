"""Imports the views in a web server's logs. Lines are judged as live hits are, at the times that
the log has: by `judging` each by itself, and here after the lines before it.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from itertools import islice
from pathlib import Path

from readtrack.conf import conf
from readtrack.doctor.wording import counted
from readtrack.flush.run import flush
from readtrack.hits import addresses
from readtrack.imports import judging, ledger, logs
from readtrack.imports.examples import Examples
from readtrack.imports.hosts import printable
from readtrack.imports.judging import Judge, Judged
from readtrack.imports.models import Import
from readtrack.imports.rules import Rules
from readtrack.imports.workers import Chunk, Workers
from readtrack.models import FlushRun, Reset
from readtrack.progress import Progress, no_progress
from readtrack.store.limits import rate_limit
from readtrack.subjects import subject_column

LINES_AT_ONCE = 1_000  # lines that are judged before the progress is reported
LINES_UNTIL_SAVED = 200_000  # lines after which the position is stored even if few views counted
MOST_WINDOWS = 500_000  # windows that are remembered; they take some 100 MB
SPARE_WINDOWS = 1_000  # further windows that may be there before some are removed
MOST_PATTERNS = 1_000  # patterns of paths without an object that are counted one by one
OTHER_PATTERNS = "(others)"  # all further patterns
# Seconds that two logs must have in common before a note says so. Pieces of one rotated log have
# fewer in common, because requests do not end in the order in which they began.
OVERLAP = 60
# If a log has that many lines from so few addresses, these may be the addresses of proxies and not
# of visitors.
MANY_LINES = 1_000
FEW_ADDRESSES = 10
# Lines at the start of a log that are searched for a user agent.
LINES_UNTIL_AGENT = 10_000
NAMED_OVERLAPS = 3  # pairs of logs with lines of the same times that a note names
NAMED_FAILURES = 5  # errors of looking up a path that notes have an example of

# UUIDs and numbers in a path.
_NUMBERS = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9]+")


def reset_time(subject: str) -> int:
    """Returns when the subject was last reset (µs of Redis's clock), or 0."""
    resets = Reset.objects.filter(subject=subject_column(subject))
    return resets.values_list("redis_time", flat=True).first() or 0


@lru_cache(maxsize=4096)
def _pattern_of(path: str) -> str:
    """Returns the pattern of a path: without its numbers, and without characters that control a
    terminal.
    """
    return printable(_NUMBERS.sub("…", path)[:80])


class _CountedBefore:
    """Tells which lines of a log have counted by an earlier import of it. Ask in the order of
    lines.
    """

    def __init__(self, earlier: logs.Earlier) -> None:
        self._ranges: Iterator[ledger.CountedRange] = ledger.counted_ranges(
            earlier.record, until=earlier.position
        )
        self._range = next(self._ranges, None)

    def time_of(self, end: int) -> int:
        """Returns when the line that ends there was added (µs of Redis's clock); 0 if it was
        not.
        """
        while self._range is not None and self._range.end < end:
            self._range = next(self._ranges, None)
        if self._range is None or end <= self._range.start:
            return 0
        return self._range.redis_time


@dataclass
class Recent:
    """Counts hits in windows of `life` seconds. It remembers MOST_WINDOWS of them."""

    life: float
    forgotten: int = 0  # windows that were removed before they were over, because of MOST_WINDOWS
    # Start (s since 1970) and number of hits of each window, by the hash of who hit what. The
    # oldest window is first. A plain tuple, because each line of a log makes two of them.
    _windows: OrderedDict[int, tuple[float, int]] = field(default_factory=OrderedDict)
    _room: int = 0  # windows from which on those that are over are removed

    def hit(self, *parties: str, at: float) -> int:
        """Counts a hit at `at` (s since 1970), and returns the number of hits in its window.

        `parties` are a visitor, or a visitor and a subject. Their first hit begins a window.
        """
        # 8 bytes in place of the texts. It is very unlikely that two of them have the same hash.
        window = hash(parties)
        if len(self._windows) >= self._room:
            self._make_room(window, at=at)
        started, hits = self._windows.get(window, (at, 0))
        if abs(at - started) >= self.life:
            del self._windows[window]  # so that the new window goes to the end
            started = at
            hits = 0
        self._windows[window] = (started, hits + 1)
        return hits + 1

    def _make_room(self, window: int, *, at: float) -> None:
        """Removes windows that are over, and the oldest one if there is no room for the window."""
        self._remove(window, at=at)
        # Windows that are over change nothing, so some may stay for a while.
        self._room = min(len(self._windows) * 5 // 4 + SPARE_WINDOWS, MOST_WINDOWS)

    def _remove(self, window: int, *, at: float) -> None:
        while self._windows:
            started, _hits = next(iter(self._windows.values()))
            # The time of a line may be a little before that of the line before it, because servers
            # write a line when the response ends. It is long before it where the next log starts
            # that began before the last one ended. So the distance counts, in both directions.
            is_over = abs(at - started) >= self.life
            has_room = window in self._windows or len(self._windows) < MOST_WINDOWS
            if has_room and not is_over:
                return
            self._windows.popitem(last=False)
            if not is_over:
                self.forgotten += 1


def _chunks_of(file: logs.LogFile) -> Iterator[Chunk]:
    """Yields the lines of the file, LINES_AT_ONCE at once. The last chunk has fewer, or none."""
    raw_lines = file.lines()
    is_over = False
    while not is_over:
        texts: list[bytes] = []
        ends: list[int] = []
        for text, end in islice(raw_lines, LINES_AT_ONCE):
            texts.append(text)
            ends.append(end)
        is_over = len(texts) < LINES_AT_ONCE
        yield Chunk(texts, ends, file.digest(), file.read())


@dataclass(kw_only=True)
class Importer:
    """One import of one or more files, as if they were one log.

    A visitor's windows reach from one file into the next one.
    """

    # See `Rules` for these.
    form: str = "auto"
    fields: Mapping[str, str] = field(default_factory=dict)
    where: Sequence[tuple[str, str]] = ()
    is_decoded: bool = False
    hosts: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    count_robots: bool = False
    again: bool = False  # judges lines again that did not count in an earlier import
    dry_run: bool = False
    jobs: int = 1  # processes that judge lines; 1 for this one alone
    progress: Progress = no_progress  # is told the number of bytes read

    def __post_init__(self) -> None:
        self.report = ledger.Report()
        self._rules = Rules(
            form=self.form,
            fields=tuple(self.fields.items()),
            where=tuple(self.where),
            is_decoded=self.is_decoded,
            hosts=tuple(self.hosts),
            since=self.since,
            until=self.until,
            count_robots=self.count_robots,
        )
        self._judge = Judge(self._rules)
        self._workers: Workers | None = None
        self._reset_time = lru_cache(maxsize=200_000)(reset_time)
        self._rates = Recent(rate_limit().seconds)
        self._views = Recent(conf.WINDOW or 1)
        self._batch = ledger.Batch()
        self._robots = 0  # lines of the file that would count but for a robot's user agent
        self._has_people = False  # a line of the file has no robot's user agent, and could count
        self._examples = Examples()
        # New lines that show an object, by address. It stops counting at too many addresses.
        self._addresses: Counter[str] = Counter()
        self._overlaps: list[str] = []
        self._failures: set[str] = set()  # errors of which a note has an example
        # New lines that show an object, and whose X-Forwarded-For names another address.
        self._not_believed = 0
        self._kept = 0  # views that counted in an earlier import, and would not count now

    def run(self, paths: Sequence[str]) -> ledger.Report:
        """Imports the files. Importing them again, also after a kill, counts every line once.

        Returns the report. Raises OSError for a file that cannot be read, and ImportRefusedError
        for one in another form than text and gzip, or if another import came first.
        """
        with ExitStack() as stack:
            opened_files = [
                logs.LogFile(stack.enter_context(Path(path).open("rb"))) for path in paths
            ]
            files = self._in_order(opened_files)
            for file in files:
                self._identify(file)
            finished = self._count_finished(files)
            unfinished = files[finished:]
            if unfinished and not self.dry_run:
                # A Redis that was restored from before the last flush catches up with SQL first.
                flush()
            if unfinished and self.jobs > 1:
                self._workers = stack.enter_context(Workers(self._rules, jobs=self.jobs))
            records = {record.source: record for record in Import.objects.filter(until__gt=0)}
            for file in unfinished:
                self._take(file, records)
                records[file.record.source] = file.record
        self._note_doubts(unfinished)
        self.report.examples = self._examples.texts
        return self.report

    def _in_order(self, files: Iterable[logs.LogFile]) -> list[logs.LogFile]:
        """Returns the files that have a line, in the order of the times of their first lines. A
        file without such a time comes last.

        The command line may have the newest file first: a shell sorts access.log before
        access.log.1.
        """

        def first_time(file: logs.LogFile) -> float:
            parse = self._judge.parser()
            for comment in file.head:
                parse(comment)
            line = parse(file.first.strip())
            return line.at.timestamp() if line else float("inf")

        begun = []
        for file in files:
            if file.first:
                begun.append(file)
            else:
                self._note_open_end(file)
        return sorted(begun, key=first_time)

    def _identify(self, file: logs.LogFile) -> None:
        """Finds out where the import of the file goes on. Notes if lines are passed over."""
        file.identify(times=self._rules.times, again=self.again, dry_run=self.dry_run)
        if file.lost:
            self.report.notes.append(
                f"{file.name}: Redis lost its data during an earlier import;"
                f" {counted(file.lost, 'byte')} passed over."
            )

    def _count_finished(self, files: Sequence[logs.LogFile]) -> int:
        """Returns how many files at the start of the list need not be read, and notes that number.

        These are the files before the first one with new lines, but not the last of them: its
        windows reach into the new lines. If no file has new lines, they are all files.
        """
        finished = len(files)
        for index, file in enumerate(files):
            has_new_lines = file.digest_at(file.position + 1) is not None
            if has_new_lines:
                finished = max(0, index - 1)
                break
        self.report.finished = finished
        if finished:
            self.progress(sum(file.read() for file in files[:finished]))
        return finished

    def _take(self, file: logs.LogFile, records: Mapping[str, Import]) -> None:
        """Imports one file. Notes earlier imports that have lines of the same times.

        `records` has the records of all imports of logs, by source.
        """
        if file.record.pk is None and not self.dry_run:
            self._identify(file)  # again, because a file before this one may be a copy of it
            file.record.save()
        has_agents = self._finds_agent(file)
        self._robots = 0
        self._has_people = False
        self._read(file, has_agents=has_agents)
        self._note_robots(file)
        if file.is_damaged:
            self.report.notes.append(f"{file.name} is damaged after what was read.")
        else:
            self._note_open_end(file)
        same_file = {earlier.record.source for earlier in file.earlier} | {file.record.source}
        for source, record in records.items():
            if source not in same_file:
                self._note_overlap(file, record)
        if not self.dry_run:
            # If nothing of it counted, it may be imported once more, after a mistake is mended.
            Import.objects.filter(pk=file.record.pk, position=0, intended=0).delete()

    def _note_open_end(self, file: logs.LogFile) -> None:
        """Notes a last line without an end, which was not read."""
        if file.has_open_end:
            self.report.notes.append(
                f"{file.name}: the last line has no end yet. The next import takes it."
            )

    def _note_robots(self, file: logs.LogFile) -> None:
        """Notes a file that seems to be of robots alone: its user agents may be misunderstood."""
        if self._robots and not self._has_people:
            self.report.notes.append(
                f"{file.name}: all of {counted(self._robots, 'line')} that could count are"
                " of robots, which is suspicious. --dry-run shows how user agents are understood."
            )

    def _finds_agent(self, file: logs.LogFile) -> bool:
        """Returns True if the file says user agents, and notes if it does not.

        Servers write `-` both for a robot that sends no agent and where they leave agents out. In a
        log that leaves them out, it is so in each line.
        """
        parse = self._judge.parser()
        has_empty_agent = False
        for text, _end in islice(file.lines(), LINES_UNTIL_AGENT):
            line = parse(text)
            if line is None:
                continue
            if line.agent:
                return True
            has_empty_agent = has_empty_agent or line.agent == ""
        if has_empty_agent and not self.count_robots:
            self.report.notes.append(
                f"{file.name}: no line has a user agent, so that robots cannot be told from people."
                " --count-robots counts all lines."
            )
        return not has_empty_agent

    def _read(self, file: logs.LogFile, *, has_agents: bool) -> None:
        """Judges all lines of a file, and adds those that count by the batch."""
        earlier_imports = [_CountedBefore(earlier) for earlier in file.earlier]
        position = 0
        bytes_read = 0
        unsaved_lines = 0
        for chunk, judged in self._judged(file, has_agents=has_agents):
            position = self._count_all(file, chunk, judged, earlier_imports, start=position)
            line_count = len(chunk.texts)
            self.report.read += line_count
            self.progress(chunk.bytes_read - bytes_read)
            bytes_read = chunk.bytes_read
            unsaved_lines += line_count
            is_over = line_count < LINES_AT_ONCE
            is_full = self._batch.is_full or unsaved_lines >= LINES_UNTIL_SAVED
            if is_over or is_full:
                self._save(file, chunk.digest, position=position, is_over=is_over)
                unsaved_lines = 0

    def _judged(
        self, file: logs.LogFile, *, has_agents: bool
    ) -> Iterator[tuple[Chunk, list[Judged]]]:
        """Yields the chunks of the file in their order, each with what is known of its lines."""
        chunks = _chunks_of(file)
        if self._workers is not None:
            yield from self._workers.judged(
                chunks, has_agents=has_agents, needs_lines=self._needs_examples
            )
            return
        self._judge.begin(0, has_agents=has_agents)
        for chunk in chunks:
            yield chunk, self._judge.judge_all(chunk.texts)

    def _needs_examples(self) -> bool:
        """Returns True if lines are to be shown as they were understood."""
        return self.dry_run and not self._examples.is_full

    def _count_all(
        self,
        file: logs.LogFile,
        chunk: Chunk,
        judged_lines: Sequence[Judged],
        earlier_imports: Sequence[_CountedBefore],
        *,
        start: int,
    ) -> int:
        """Counts the lines of a chunk, and the reasons why lines do not count.

        `start` is where the first line starts. `earlier_imports` are other imports of the file.
        Returns the position after the last line.
        """
        for text, end, judged in zip(chunk.texts, chunk.ends, judged_lines, strict=True):
            has_counted = bool(earlier_imports) and self._has_counted(judged, end, earlier_imports)
            is_before_position = end <= file.position
            is_new = not is_before_position and not has_counted
            reason = self._count(file, judged, is_new=is_new)
            if not is_new:
                # The line was judged again for its windows: a repeat in a new line must not count.
                self._kept += not is_before_position and reason not in {"", judging.OUTSIDE}
                reason = "imported before"
            elif judged.subject and not reason:
                self._batch.add_line(start=start, end=end)
            if reason:
                self.report.skipped[reason] += 1
            if self._needs_examples():
                self._note_example(text, judged, reason)
            start = end
        return start

    def _note_example(self, raw: bytes, judged: Judged, reason: str) -> None:
        """Notes how the line was understood, if it is an example."""
        if reason == judging.COMMENT:
            return
        line = judged.line
        subject = self._judge.pages.look_up(line.path).subject if line else None
        self._examples.add(raw, line, subject, reason=reason)

    def _has_counted(
        self, judged: Judged, end: int, earlier_imports: Sequence[_CountedBefore]
    ) -> bool:
        """Returns True if the line that ends there has counted by one of these imports, and what it
        shows was not reset since.
        """
        counted_at = max(earlier.time_of(end) for earlier in earlier_imports)
        if not counted_at:
            return False
        subject = self._judge.pages.look_up(judged.path).subject if judged.path else None
        return not subject or self._reset_time(subject) < counted_at

    def _save(self, file: logs.LogFile, digest: str, *, position: int, is_over: bool) -> None:
        """Adds the batch to the counts, and begins a new one. Reports views that could not be
        added.

        `position` is where the batch ends in the log, and `digest` that of the log up to there. The
        position is stored if something of the log has counted since it was opened. Otherwise the
        arguments or the settings may be wrong, and the next import judges these lines again.
        """
        batch = self._batch
        self._batch = ledger.Batch()
        if self.dry_run or position <= file.record.position:
            return
        file.has_counted = file.has_counted or bool(batch.views)
        if not batch.views and not (is_over and file.has_counted):
            return
        refused = ledger.add(file.record, batch, position=position, digest=digest)
        for subject, views in refused.items():
            self.report.counted -= views
            reason = (
                f"{file.name}: {counted(views, 'view')} of {subject} refused, because its count is"
                f" no number below {ledger.MOST_VIEWS:,}."
            )
            self.report.refuse(reason, views=views)

    def _note_overlap(self, file: logs.LogFile, other: Import) -> None:
        """Notes the other import if it has lines of the same times as the file."""
        since = max(file.record.since, other.since)
        until = min(file.record.until, other.until)
        if until - since < OVERLAP:
            return
        first = datetime.fromtimestamp(since, timezone.utc)
        last = datetime.fromtimestamp(until, timezone.utc)
        self._overlaps.append(
            f"{file.name} and {other.name} both have lines of {first:%Y-%m-%d %H:%M} to"
            f" {last:%Y-%m-%d %H:%M} UTC."
        )

    def _count(self, file: logs.LogFile, judged: Judged, *, is_new: bool) -> str:
        """Puts a new line into the batch if it is a view. Returns the reason why it does not count,
        or "".

        A line that was imported before only enters its windows. If no view says what a path shows,
        the path is counted in the report, and there is no reason.
        """
        if judged.at is None:
            if is_new and judged.reason == judging.OUTSIDE:
                file.record.times = self._rules.times
            return judged.reason
        file.note_time(int(judged.at))
        self._has_people = self._has_people or judged.is_of_person
        if is_new and judged.address:
            self._count_address(judged)
        if judged.reason:
            self._note_refusal(judged)
            return judged.reason
        if judged.subject:
            return self._visit(judged, judged.subject, at=judged.at, is_new=is_new)
        if is_new:
            self._count_not_resolved(judged.path)
        return ""

    def _note_refusal(self, judged: Judged) -> None:
        """Notes what the report tells of a line that cannot count."""
        if judged.reason == judging.BOT:
            self._robots += 1
        elif judged.reason == judging.OTHER_HOST:
            self._judge.hosts.count(judged.detail)
        elif judged.reason == judging.FAILED:
            self._note_failure(judged.path, judged.detail)

    def _count_not_resolved(self, path: str) -> None:
        """Counts the pattern of a path."""
        pattern = _pattern_of(path)
        counts = self.report.not_resolved
        if pattern not in counts and len(counts) >= MOST_PATTERNS:
            pattern = OTHER_PATTERNS
        counts[pattern] += 1

    def _note_failure(self, path: str, error: str) -> None:
        """Notes an error of looking up a path, with the path as its example."""
        error = printable(error[:300])
        if error not in self._failures and len(self._failures) < NAMED_FAILURES:
            self._failures.add(error)
            self.report.notes.append(
                f"{printable(path[:80])} could not be looked up: {error}. A function in"
                " READTRACK['IMPORTS'] may find its object."
            )

    def _visit(self, judged: Judged, subject: str, *, at: float, is_new: bool) -> str:
        """Counts a line that shows an object, at `at` (s since 1970). Returns the reason why it
        does not count, or "".
        """
        reason = self._repeat(judged.same_visitor, subject, at=at)
        if reason == "" and is_new:
            self.report.counted += 1
            self._batch.add(
                subject, visitor=judged.visitor, at=datetime.fromtimestamp(at, timezone.utc)
            )
        return reason

    def _count_address(self, judged: Judged) -> None:
        """Counts a line of the address, unless there are so many addresses that no proxy is meant.

        It also counts lines whose X-Forwarded-For names another address. `_note_doubts` looks at
        the numbers.
        """
        if len(self._addresses) <= FEW_ADDRESSES:
            self._addresses[judged.address] += 1
        if judged.names_another:
            self._not_believed += 1

    def _repeat(self, visitor: str, subject: str, *, at: float) -> str:
        """Returns "rate" or "repeat" if the visitor's view does not count for that reason, or "".

        It decides as record.lua does for live hits. `at` is the time (s since 1970).
        """
        if self._rates.hit(visitor, at=at) > rate_limit().hits:
            return "rate"
        if self._views.hit(visitor, subject, at=at) > 1:
            return "repeat"
        return ""

    def _note_doubts(self, files: Sequence[logs.LogFile]) -> None:
        """Notes signs that the counts may be wrong. `files` are the files that were read."""
        notes = self.report.notes
        if note := self._judge.hosts.note():
            notes.append(note)
        line_count = self._addresses.total()
        if line_count >= MANY_LINES and len(self._addresses) <= FEW_ADDRESSES:
            listed = ", ".join(sorted(self._addresses))
            notes.append(
                f"{counted(line_count, 'line')} of {listed} and of no other address. If that is a"
                " proxy's, people with the same browser are one visitor."
            )
        if self._not_believed * 2 > self.report.counted:
            notes.append(
                f"{counted(self._not_believed, 'line')} with another address in X-Forwarded-For,"
                f" which is not believed. {addresses.ADVICE}"
            )
        if self._overlaps:
            notes.append(self._overlap_note())
        if self._kept:
            notes.append(
                f"{counted(self._kept, 'view')} that an earlier import has counted would not count"
                " now. They stay. `import --undo` takes back all that a log has added; then import"
                " it again."
            )
        if self._views.forgotten:
            notes.append(
                f"{counted(self._views.forgotten, 'visit')} forgotten within the window, so"
                " reloads may count as views."
            )
        if self.until is None:
            self._note_live_counting(files)

    def _overlap_note(self) -> str:
        """Returns the note on pairs of logs that have lines of the same times."""
        sentences = self._overlaps[:NAMED_OVERLAPS]
        unnamed = len(self._overlaps) - len(sentences)
        if unnamed:
            sentences.append(f"So have {unnamed} other pairs of logs.")
        sentences.append(
            "If they are pieces of one log, lines count twice; --since and --until leave times out."
        )
        return " ".join(sentences)

    def _note_live_counting(self, files: Sequence[logs.LogFile]) -> None:
        """Notes a log that goes on after the first flush: its views may have counted live, too."""
        first = FlushRun.objects.order_by("started").first()
        if first is None:
            return
        began = int(first.began.timestamp())
        if any(file.record.until >= began for file in files):
            self.report.notes.append(
                f"The log goes on after {first.began:%Y-%m-%d %H:%M} UTC. If views were counted"
                " live by then, give --until that moment."
            )
