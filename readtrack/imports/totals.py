"""Imports a list of totals: a CSV file with the views that another counter has counted, or an
export of GoatCounter.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from django.conf import settings

from readtrack.flush.run import flush
from readtrack.imports import goatcounter
from readtrack.imports.hosts import printable
from readtrack.imports.ledger import MOST_VIEWS, Batch, ImportRefusedError, Report, add, resume
from readtrack.imports.models import Import
from readtrack.imports.pages import Lookup, look_up
from readtrack.imports.stored import stored_of_any
from readtrack.imports.tables import pk_of
from readtrack.progress import Progress, no_progress
from readtrack.subjects import counted_models, label_of, subject_of_row

ROWS = 500  # in a batch
NAMED_ROWS = 5  # wrong rows that an error names
SEPARATORS = ",;\t"  # between the cells of a row
# A whole number, with one kind of separator between its thousands: `1234`, `1,234`, `1.234`.
NUMBER = re.compile(r"\d{1,13}|\d{1,3}(?:([,.'\u2019 \u00a0\u202f])\d{3})(?:\1\d{3})*")
SOURCE = "totals."
ZIP = b"PK\x03\x04"
GZIP = b"\x1f\x8b"


class Row(NamedTuple):
    """A row of the list."""

    page: str  # a path, an address, or the label of a model and a primary key, `news.post:1`
    views: int
    hour: int | None = None  # since 1970; None if the list knows no times


def take_totals(path: str, *, dry_run: bool = False, progress: Progress = no_progress) -> Report:
    """Adds the views of the list to the counts, each list once, also after a kill.

    `progress` is told the number of rows. Returns the report. Raises OSError for a file that
    cannot be read, and ImportRefusedError, before anything is added, for a list with a wrong row.
    """
    rows = _rows_of(path)
    record = _record_of(path, rows)
    position, lost = resume(record, dry_run=dry_run)
    report = Report(read=len(rows))
    report.skipped["imported before"] = min(position, len(rows))
    if lost:
        report.notes.append(
            "Redis lost its data during an earlier import; some rows are passed over."
        )
    _note_other_lists(record, report)
    if not dry_run:
        record.save()
        # SQL and Redis agree on all views that were counted live.
        flush()
    look_up_once = lru_cache(maxsize=10_000)(_look_up)
    rest = iter(rows[position:])
    while chunk := list(islice(rest, ROWS)):
        position += len(chunk)
        batch = _batch(chunk, report, look_up_once)
        if not dry_run:
            _add(record, batch, report, position=position)
        progress(len(chunk))
    return report


def _record_of(path: str, rows: Sequence[Row]) -> Import:
    """Returns the record of an earlier import of the same rows, or a new one."""
    digest = blake2b(repr(rows).encode(), digest_size=8).hexdigest()
    source = f"{SOURCE}{digest}"
    record = Import.objects.filter(source=source).first()
    return record or Import(source=source, name=path[-255:])


def records_of(path: str) -> list[Import]:
    """Returns the record of an earlier import of the same rows, as a list; an empty one for none.

    Raises OSError and ImportRefusedError for a file that is no list.
    """
    record = _record_of(path, _rows_of(path))
    return [record] if record.pk else []


def _note_other_lists(record: Import, report: Report) -> None:
    """Notes that another list was imported before, because its pages may be in this one, too."""
    others = Import.objects.filter(source__startswith=SOURCE, position__gt=0)
    names = others.exclude(source=record.source).values_list("name", flat=True)[:NAMED_ROWS]
    if names:
        report.notes.append(
            f"Other lists were imported before: {', '.join(map(printable, names))}. Lists add up,"
            " so a page that is in two of them has the views of both."
        )


def _batch(rows: Sequence[Row], report: Report, look_up_once: Callable[[str], Lookup]) -> Batch:
    """Returns a batch with the views of the rows whose objects exist. Reports all other rows."""
    batch = Batch()
    for page, views, hour in rows:
        found = look_up_once(page)
        if found.error:
            report.refuse(f"{printable(page[:80])} could not be looked up: {found.error}")
        elif found.subject is None:
            report.not_resolved[printable(page[:80])] += 1
        elif found.subject == "":
            report.skipped["no such object"] += 1
        elif views:
            batch.add_views(found.subject, views, hour=hour)
            report.counted += views
    return batch


def _look_up(page: str) -> Lookup:
    """Returns the object of the page."""
    label, separator, key = page.partition(":")
    models = {label_of(model): model for model in counted_models()}
    model = models.get(label.lower())
    if not separator or model is None:
        return _look_up_path(_path_of(page))
    pk = pk_of(model, key)
    if pk is None or pk not in stored_of_any(model, [pk]):
        return Lookup("")
    return Lookup(subject_of_row(model, pk))


def _look_up_path(path: str) -> Lookup:
    """Returns the object of the page at that path.

    Other counters may leave out the slash at its end, to which Django redirects.
    """
    found = look_up(path)
    leads_nowhere = found.subject is None and not found.error
    if leads_nowhere and settings.APPEND_SLASH and not path.endswith("/"):
        return look_up(f"{path}/")
    return found


def _path_of(address: str) -> str:
    """Returns the path of an address, as a view gets it: without escapes and parameters."""
    try:
        path = urlsplit(address).path
    except ValueError:
        path = address
    return unquote(path)


def _add(record: Import, batch: Batch, report: Report, *, position: int) -> None:
    """Adds the batch to the counts. Reports views that could not be added."""
    for subject, views in add(record, batch, position=position).items():
        report.counted -= views
        report.refuse(
            f"{subject} is refused: with these {views:,} views it would have more than"
            f" {MOST_VIEWS:,}."
        )


def _rows_of(path: str) -> list[Row]:
    """Returns the rows of the file. Raises ImportRefusedError if one of them is wrong."""
    head = _head_of(path)
    if head.startswith(ZIP):
        return _rows_by_hour(goatcounter.hours_of_zip(path))
    text_lines = _text_lines(path, is_compressed=head.startswith(GZIP))
    if text_lines and goatcounter.is_heading(text_lines[0].split(",")):
        return _rows_by_hour(goatcounter.hours_of_csv(text_lines))
    rows = []
    problems = []
    for number, cells in _cells_of(path, text_lines):
        views = number_of(cells["views"])
        if views is None:
            problems.append(f"line {number}: {cells['views'][:40]!r} is no number of views")
        else:
            rows.append(Row(cells["page"], views))
    if problems:
        named = "; ".join(problems[:NAMED_ROWS])
        more = f"; and {len(problems) - NAMED_ROWS} more" if len(problems) > NAMED_ROWS else ""
        raise ImportRefusedError(f"{path}, {named}{more}. Nothing was imported.")
    return rows


def _head_of(path: str) -> bytes:
    """Returns the first bytes of the file."""
    with Path(path).open("rb") as file:
        return file.read(4)


def _text_lines(path: str, *, is_compressed: bool) -> list[str]:
    """Returns the lines of the file. Raises ImportRefusedError for another one than text."""
    opened = gzip.open if is_compressed else open
    try:
        with opened(path, "rt", newline="", encoding="utf-8-sig") as file:
            return list(file)
    except (UnicodeDecodeError, EOFError, zlib.error) as error:
        raise ImportRefusedError(f"{path} is no text in UTF-8.") from error


def _rows_by_hour(hours: goatcounter.Hours) -> list[Row]:
    """Returns a row for each page and hour, those of a page together."""
    return [Row(page, views, hour) for (page, hour), views in sorted(hours.items())]


def _cells_of(path: str, text_lines: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields the number of each line, and its cells `page` and `views`.

    Raises ImportRefusedError for a file without a heading that names these columns.
    """
    start = 0  # of the heading: Google Analytics writes comments above it
    while start < len(text_lines) and text_lines[start].strip()[:1] in {"", "#"}:
        start += 1
    heading = text_lines[start] if start < len(text_lines) else ""
    separator = max(SEPARATORS, key=heading.count)
    reader = csv.reader(text_lines[start:], delimiter=separator)
    names = [name.strip().lower() for name in next(reader, [])]
    page_names = {"path", "object"} & {*names}
    if not page_names or "views" not in names:
        raise ImportRefusedError(
            f"{path} needs a heading with the columns `path` and `views`, or `object` and `views`."
        )
    page_index = names.index(min(page_names))
    views_index = names.index("views")
    for cells in reader:
        if not any(cells):
            continue
        padded = [*cells, *([""] * len(names))]
        number = start + reader.line_num
        yield number, {"page": padded[page_index].strip(), "views": padded[views_index]}


def number_of(text: str) -> int | None:
    """Returns the whole number that a list has; None for any other text."""
    text = text.strip()
    if not NUMBER.fullmatch(text):
        return None
    number = int(re.sub(r"\D", "", text))
    return number if number <= MOST_VIEWS else None
