"""A web server's log as a stream of lines: a file, compressed or not, or what stands on standard input."""

import gzip
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from readtrack.imports.lines import LONGEST

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
