"""Log files: their lines, and which of them were imported before, and how far."""

import gzip
import secrets
import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from readtrack import buckets
from readtrack.imports import ledger
from readtrack.imports.lines import LONGEST
from readtrack.models import Import

CHUNK = 131_072  # bytes read at once
GZIP = b"\x1f\x8b"


class LogLine(NamedTuple):
    """A line's bytes, and where it ends among the log's uncompressed bytes. `raw` is empty for a line too long."""

    raw: bytes
    end: int


class LogFile:
    """One file: a log, or a piece of one. Its content identifies it, so it may be renamed, rotated or compressed."""

    record: Import
    position = lost = 0  # where its import goes on, and the bytes before that which were passed over
    since: datetime | None = None  # first and last time of its lines
    until: datetime | None = None
    elsewhere: Sequence[tuple[datetime, datetime]] = ()  # first and last times of other pieces of the same log

    def __init__(self, path: str) -> None:
        self.name = path
        self.is_damaged = False
        self._state = blake2b(digest_size=16)
        self._file = cast("IO[bytes]", Path(path).open("rb"))  # noqa: SIM115 - see close

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def first(self) -> bytes:
        """Returns the first line, or as much of it as is looked at; empty if there is no whole line."""
        raw = self._open().readline(LONGEST)
        return raw if len(raw) == LONGEST or raw[-1:] == b"\n" else b""

    def lines(self) -> Iterator[LogLine]:
        """Yields every whole line. A last line without an end is still being written: the next import takes it."""
        end, stream, state, is_long = 0, self._open(), blake2b(digest_size=16), False
        while raw := stream.readline(LONGEST):
            state.update(raw)
            end += len(raw)
            if raw[-1:] == b"\n":
                self._state = state.copy()
                yield LogLine(b"" if is_long else raw[:-1].rstrip(b"\r"), end)
            is_long = raw[-1:] != b"\n"

    def line_count(self) -> int:
        """Returns the number of whole lines."""
        stream = self._open()
        return sum(data.count(b"\n") for data in iter(lambda: stream.read(CHUNK), b""))

    @property
    def read(self) -> int:
        """Returns how many bytes of the file were read, compressed as they are."""
        return self._file.tell()

    @property
    def digest(self) -> str:
        """Returns the digest of everything up to the end of the last line that `lines` gave."""
        return self._state.hexdigest()

    def digests(self, positions: Sequence[int]) -> dict[int, str]:
        """Returns the digest of the log up to each of the positions that it reaches."""
        found: dict[int, str] = {}
        state, read, stream = blake2b(digest_size=16), 0, self._open()
        for position in sorted(positions):
            while read < position:
                data = stream.read(min(CHUNK, position - read))
                if not data:
                    return found
                state.update(data)
                read += len(data)
            found[position] = state.hexdigest()
        return found

    def has_more(self, position: int) -> bool:
        """Returns True if anything comes after the position."""
        return bool(self.digests([position + 1]))

    def identify(self, *, log: str = "", dry_run: bool = False) -> None:
        """Finds the record of an earlier import of the file, or makes one. `log` is the log that it is a piece of."""
        first_line = blake2b(self.first(), digest_size=16).hexdigest()
        self.record = self._known(first_line) or Import(
            source=secrets.token_hex(8), name=self.name[-255:], first_line=first_line, digest=self.digests([0])[0]
        )
        self.record.log = log or self.record.log
        self.position, self.lost = ledger.resume(
            self.record, digest=lambda position: self.digests([position]).get(position), dry_run=dry_run
        )
        if not dry_run:
            self.record.save(update_fields=["log"] if self.record.pk else None)
        if self.record.log:
            others = Import.objects.filter(log=self.record.log, since__isnull=False).exclude(pk=self.record.pk)
            times = others.values_list("since", "until")
            self.elsewhere = [(buckets.now(since), buckets.now(until)) for since, until in times]

    def _known(self, first_line: str) -> Import | None:
        """Returns the record with the same first line and the same content up to its position.

        A log that ends before the position cannot be compared, and is taken for an older copy.
        """
        records = Import.objects.filter(first_line=first_line).order_by("-position")
        digests = self.digests([record.position for record in records])
        return next(
            (record for record in records if digests.get(record.position, record.digest) == record.digest), None
        )

    def see(self, at: datetime) -> None:
        """Widens the time range."""
        self.since = min(at, self.since or at)
        self.until = max(at, self.until or at)

    def _open(self) -> IO[bytes]:
        self._file.seek(0)
        is_compressed = self._file.read(2) == GZIP
        self._file.seek(0)
        if not is_compressed:
            return self._file
        return BufferedReader(_SoundPart(self), CHUNK)


class _SoundPart(RawIOBase):
    """Content of a gzip file, up to where the file is damaged."""

    def __init__(self, log: LogFile) -> None:
        self._log, self._packed = log, gzip.GzipFile(fileobj=log._file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._packed.read1(len(buffer))
        except (EOFError, OSError, zlib.error):
            self._log.is_damaged = True
            return 0
        buffer[: len(data)] = data
        return len(data)
