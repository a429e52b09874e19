"""Log files: their lines, and which of them were imported before, and how far."""

import gzip
import secrets
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from typing import BinaryIO

from readtrack.imports import ledger
from readtrack.imports.lines import LONGEST
from readtrack.models import Import

GZIP = b"\x1f\x8b"
_OTHERS = {  # what a file that is neither text nor gzip begins with, its form, and a command that makes a log of it
    b"BZh": ("bzip2", "bunzip2 --keep"),
    b"\xfd7zXZ\x00": ("xz", "unxz --keep"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"PK\x03\x04": ("zip", "unzip"),
    b"\xff\xfe": ("UTF-16", "iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": ("UTF-16", "iconv -f UTF-16 -t UTF-8"),
}


class LogFile:
    """One file: a log, or a piece of one. Its content identifies it, so it may be renamed, rotated or compressed."""

    record: Import
    position = lost = 0  # where its import goes on, and the bytes before that which were passed over

    def __init__(self, file: BinaryIO) -> None:
        """Raises ImportRefusedError for a file in another form than text and gzip."""
        self.name = file.name
        head = file.read(max(map(len, _OTHERS)))
        for start, (form, command) in _OTHERS.items():
            if head.startswith(start):
                raise ledger.ImportRefusedError(f"{self.name} is {form}. Convert it first: {command} {self.name}")
        self.is_damaged = False
        self._state = blake2b(digest_size=16)
        self._file = file
        self.read = file.tell  # how many bytes of the file were read, compressed as they are

    def first(self) -> bytes:
        """Returns the first line, or as much of it as is looked at; empty if there is no whole line."""
        raw = next(self._pieces(), b"")
        return raw if len(raw) == LONGEST or raw[-1:] == b"\n" else b""

    def lines(self) -> Iterator[tuple[bytes, int]]:
        """Yields each whole line, empty if it is too long, and where it ends among the log's uncompressed bytes."""
        # A last line without an end is still being written: the next import takes it.
        end, state, is_long = 0, blake2b(digest_size=16), False
        for raw in self._pieces():
            state.update(raw)
            end += len(raw)
            if raw[-1:] == b"\n":
                self._state = state.copy()
                yield b"" if is_long else raw[:-1].rstrip(b"\r"), end
            is_long = raw[-1:] != b"\n"

    @property
    def digest(self) -> str:
        """Returns the digest of everything up to the end of the last line that `lines` gave."""
        return self._state.hexdigest()

    def digest_at(self, position: int) -> str | None:
        """Returns the digest of everything up to the position; None if the log ends sooner."""
        state = blake2b(digest_size=16)
        for raw in self._pieces():
            state.update(raw[:position])
            position -= len(raw)
            if position <= 0:
                return state.hexdigest()
        return None

    def identify(self, *, dry_run: bool = False) -> None:
        """Finds the record of an earlier import of the file, or makes one."""
        first_line = blake2b(self.first(), digest_size=16).hexdigest()
        new = Import(source=secrets.token_hex(8), name=self.name[-255:], first_line=first_line, digest=self.digest)
        same_start = Import.objects.filter(first_line=first_line).order_by("-position")
        # A log that ends before the position cannot be compared, and is taken for an older copy.
        known = (record for record in same_start if self.digest_at(record.position) in {record.digest, None})
        self.record = next(known, new)
        self.position, self.lost = ledger.resume(self.record, digest=self.digest_at, dry_run=dry_run)
        if not dry_run and self.record.pk is None:
            self.record.save()

    def _pieces(self) -> Iterator[bytes]:
        """Yields lines, a long one in pieces, up to where a gzip file is damaged."""
        self._file.seek(0)
        is_compressed = self._file.read(2) == GZIP
        self._file.seek(0)
        stream = gzip.GzipFile(fileobj=self._file) if is_compressed else self._file
        try:
            while raw := stream.readline(LONGEST):
                yield raw
        except (EOFError, gzip.BadGzipFile, zlib.error):
            self.is_damaged = True
