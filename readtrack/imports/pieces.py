"""Which logs were imported before, and how far."""

import gzip
import secrets
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from readtrack import buckets
from readtrack.imports import ledger
from readtrack.imports.lines import LONGEST
from readtrack.models import Import

CHUNK = 1_048_576  # bytes read at once
GZIP = b"\x1f\x8b"
DAMAGE = (EOFError, OSError, zlib.error)  # what reading a cut or broken file raises


class LogLine(NamedTuple):
    """A line's bytes, and where it ends among the log's uncompressed bytes. `raw` is empty where it is too long."""

    raw: bytes
    end: int


class Log:
    """One log. A log is known by its content, so neither renaming, rotating nor compressing it makes it another."""

    def __init__(self, path: str) -> None:
        """`-` is standard input, kept in a temporary file, since a log is read more than once."""
        self.name = path
        self._file = _spooled() if path == "-" else cast("IO[bytes]", Path(path).open("rb"))  # noqa: SIM115 - see close
        self.is_damaged = False
        self._state = blake2b(digest_size=16)

    def close(self) -> None:
        """Lets the file go."""
        self._file.close()

    def first(self) -> bytes:
        """The first line, or as much of it as is looked at; empty while there is no whole one."""
        try:
            raw = self._open().readline(LONGEST)
        except DAMAGE:
            return b""
        return raw if len(raw) == LONGEST or raw[-1:] == b"\n" else b""

    def lines(self) -> Iterator[LogLine]:
        """Every whole line. A last one without an end is still being written: it comes with the next import."""
        end, stream, state = 0, self._open(), blake2b(digest_size=16)
        try:
            while raw := stream.readline(LONGEST):
                is_long = False
                if raw[-1:] != b"\n":
                    state = state.copy()  # what may turn out to be no line is not in the digest
                while raw[-1:] != b"\n":
                    state.update(raw)
                    end += len(raw)
                    raw, is_long = stream.readline(LONGEST), True
                    if not raw:
                        return
                state.update(raw)
                end += len(raw)
                self._state = state
                yield LogLine(b"" if is_long else raw[:-1].rstrip(b"\r"), end)
        except DAMAGE:
            self.is_damaged = True

    @property
    def read(self) -> int:
        """Bytes of the file that were read, compressed as they are."""
        return self._file.tell()

    @property
    def digest(self) -> str:
        """Of everything up to the end of the last line that `lines` gave."""
        return self._state.hexdigest()

    def digests(self, positions: list[int]) -> dict[int, str]:
        """The digest of the log up to each of those positions that it reaches."""
        found: dict[int, str] = {}
        state, read, stream = blake2b(digest_size=16), 0, self._open()
        for position in sorted(positions):
            while read < position:
                try:
                    data = stream.read(min(CHUNK, position - read))
                except DAMAGE:
                    data = b""
                if not data:
                    return found
                state.update(data)
                read += len(data)
            found[position] = state.hexdigest()
        return found

    def has_more(self, position: int) -> bool:
        """Whether anything comes after the position."""
        try:
            stream = self._open()
            stream.seek(position)
            return stream.read(1) != b""
        except DAMAGE:
            return False

    def _open(self) -> IO[bytes]:
        self._file.seek(0)
        is_compressed = self._file.read(2) == GZIP
        self._file.seek(0)
        if not is_compressed:
            return self._file
        packed: Any = gzip.GzipFile(fileobj=self._file)
        return BufferedReader(packed, CHUNK)


def _spooled() -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the log closes it
    shutil.copyfileobj(sys.stdin.buffer, file, CHUNK)
    return file


Span = tuple[datetime, datetime]


@dataclass(slots=True)
class Piece:
    """One file: its record, where its import goes on, and the times of other pieces of the same log."""

    log: Log
    record: Import
    position: int
    lost: int
    elsewhere: Sequence[Span]

    def see(self, at: datetime) -> None:
        """Widens the record's time range."""
        at = buckets.for_field(at)
        self.record.since = min(at, self.record.since or at)
        self.record.until = max(at, self.record.until or at)


def piece(log: Log, *, name: str = "", dry_run: bool = False) -> Piece:
    """The file, as what it was imported before or as a new one. `name` is of the log that it is a piece of."""
    record = _known(log) or Import(
        source=secrets.token_hex(8),
        name=log.name[-255:],
        first_line=_digest(log.first()),
        digest=log.digests([0])[0],
    )
    record.log = name or record.log
    resumed = ledger.resume(record, digest=lambda position: log.digests([position]).get(position), dry_run=dry_run)
    if not dry_run:
        record.save(update_fields=["log"] if record.pk else None)
    return Piece(log, record, *resumed, _elsewhere(record))


def _known(log: Log) -> Import | None:
    """A log is known by its first line and by all that was imported of it.

    One that ends before the imported position cannot be compared, and is taken for an older copy.
    """
    candidates = Import.objects.filter(first_line=_digest(log.first())).order_by("-position")
    digests = log.digests([record.position for record in candidates])
    return next((record for record in candidates if digests.get(record.position, record.digest) == record.digest), None)


def _elsewhere(record: Import) -> list[Span]:
    if not record.log:
        return []
    others = Import.objects.filter(log=record.log, since__isnull=False, until__isnull=False).exclude(pk=record.pk)
    return [(buckets.now(since), buckets.now(until)) for since, until in others.values_list("since", "until")]


def unfinished(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Those with something new, from the last known one before them on, for its windows reach into the next."""
    new = next((index for index, piece in enumerate(pieces) if piece.log.has_more(piece.position)), len(pieces))
    return pieces[max(new - 1, 0) :] if new < len(pieces) else []


def _digest(line: bytes) -> str:
    return blake2b(line, digest_size=16).hexdigest()
