"""The exports of GoatCounter: a CSV file with a row for each page view, and a ZIP file with the
views of each hour.
"""

import csv
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import TextIOWrapper
from typing import Any

from readtrack import buckets
from readtrack.imports.ledger import ImportRefusedError
from readtrack.imports.line import time_of

# The version of the export, then the name of the first column.
_FIRST_COLUMN = re.compile(r"\d+Path")
_TRUE = {"1", "true"}
_PATHS = "paths.jsonl"
_HOURS = "hit_stats.jsonl"

# Views by path and hour (since 1970).
Hours = Counter[tuple[str, int]]


def is_heading(names: Sequence[str]) -> bool:
    """Returns True for the names of the columns of GoatCounter's CSV file."""
    return bool(names) and _FIRST_COLUMN.fullmatch(names[0]) is not None


def hours_of_csv(text_lines: Iterable[str]) -> Hours:
    """Returns the views in the lines of a CSV file: those of no robot and of no event.

    Raises ImportRefusedError for a row without a time.
    """
    reader = csv.reader(text_lines)
    names = ["Path", *next(reader)[1:]]
    hours: Hours = Counter()
    for cells in reader:
        row = dict(zip(names, cells, strict=False))
        is_event = row.get("Event", "").lower() in _TRUE
        if not cells or is_event or row.get("Bot", "") not in {"", "0"}:
            continue
        at = time_of(row.get("Date", ""))
        if at is None:
            raise ImportRefusedError(
                f"Line {reader.line_num} has no time: {row.get('Date', '')[:40]!r}. Nothing was"
                " imported."
            )
        hours[row["Path"], buckets.hour_index(at)] += 1
    return hours


def hours_of_zip(path: str) -> Hours:
    """Returns the views in a ZIP file. Raises ImportRefusedError if it is no export."""
    hours: Hours = Counter()
    try:
        with zipfile.ZipFile(path) as archive:
            pages = {
                entry["id"]: str(entry["path"])
                for entry in _entries(archive, _PATHS)
                if not entry.get("event")
            }
            for entry in _entries(archive, _HOURS):
                at = time_of(entry["hour"])
                if entry["path_id"] in pages and at is not None:
                    hours[pages[entry["path_id"]], buckets.hour_index(at)] += int(entry["count"])
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        raise ImportRefusedError(f"{path} is no export of GoatCounter: {error}") from error
    return hours


def _entries(archive: zipfile.ZipFile, name: str) -> Iterator[Any]:
    """Yields the entries of a file in the archive. Raises KeyError if there is no such file."""
    [path] = [path for path in archive.namelist() if path.rpartition("/")[2] == name] or [name]
    with archive.open(path) as file:
        for text in TextIOWrapper(file, encoding="utf-8"):
            yield json.loads(text)
