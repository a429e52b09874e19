"""Log files: reading their lines, and finding out how far a file was imported before."""

import gzip
import secrets
import zlib
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, BinaryIO, NamedTuple

from readtrack.imports import arrays, containers, ledger, lines
from readtrack.imports.models import Import


class _Form(NamedTuple):
    """A form of file that cannot be read."""

    name: str
    command: str  # the command that converts it to a log


# By the bytes at the start of such a file.
_UNREADABLE_FORMS = {
    b"BZh": _Form("bzip2", "bunzip2 --keep"),
    b"\xfd7zXZ\x00": _Form("xz", "unxz --keep"),
    b"\x28\xb5\x2f\xfd": _Form("zstd", "unzstd"),
    b"\x04\x22\x4d\x18": _Form("lz4", "unlz4"),
    b"\x02\x21\x4c\x18": _Form("lz4", "unlz4"),
    b"\x1f\x9d": _Form("compress", "gunzip --keep"),
    b"PK\x03\x04": _Form("zip", "unzip"),
    b"\xff\xfe": _Form("UTF-16", "iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": _Form("UTF-16", "iconv -f UTF-16 -t UTF-8"),
}
HEAD = 100  # comments at the start of a log that are kept
LONGEST = 65_536  # bytes of a line that are read at once; a longer line is malformed


class Earlier(NamedTuple):
    """An earlier import of a file."""

    record: Import
    position: int  # where it would go on
    lost: int  # bytes before the position that are passed over


class LogFile:
    """One file: a log, or a piece of a rotated one. It is identified by its content, so it may be
    renamed, rotated or compressed between two imports.
    """

    record: Import  # of this import of the file; `identify` finds or makes it
    earlier: Sequence[Earlier]  # the other imports of the file, which judged it before
    position: int  # where the import goes on, in bytes of the uncompressed log
    lost: int  # bytes before the position that are passed over
    has_counted: bool = False  # a line has counted since the file was opened

    def __init__(self, file: BinaryIO) -> None:
        """Raises ImportRefusedError for a file in another form than text and gzip."""
        self.name = file.name
        self.read = file.tell  # returns how many bytes of the (compressed) file were read
        self.is_damaged = False
        self.has_open_end = False  # the last line that was read has no end
        self._begin_digest()
        self._file = file
        head = file.read(max(map(len, _UNREADABLE_FORMS)))
        for start, form in _UNREADABLE_FORMS.items():
            if head.startswith(start):
                raise ledger.ImportRefusedError(
                    f"{self.name} is {form.name}. Convert it first: {form.command} {self.name}"
                )
        self._is_compressed = head.startswith(b"\x1f\x8b")
        head_of_log = b"".join(self._sound(_head_of))
        self._has_entries = arrays.has_entries(head_of_log)  # which are not on a line each
        # The first line after the head, or the first LONGEST bytes of it. Empty if the line has no
        # end yet. Many logs may have the same head.
        self.first = b""
        self.head: list[bytes] = []  # comments before the first line
        for piece in self._pieces():
            if not lines.is_comment(piece):
                is_cut = len(piece) == LONGEST
                self.first = piece if is_cut or self._is_end(piece) else b""
                self.has_open_end = not self.first
                break
            if len(self.head) < HEAD:
                self.head.append(piece.rstrip())

    def lines(self) -> Iterator[tuple[bytes, int]]:
        """Yields each whole line, and the position of its end in the uncompressed log.

        A line that is too long is yielded as an empty one. Pieces that a container runtime has cut
        are yielded as one line.
        """
        self._begin_digest()
        joiner = containers.joiner_of(self.first)
        end = 0
        is_rest_of_line = False
        held: list[bytes] = []  # what no yielded line has yet
        for piece in self._pieces():
            held.append(piece)
            end += len(piece)
            is_end = self._is_end(piece)
            # A last line without an end is still being written: the next import takes it.
            if is_end:
                line: bytes | None = b"" if is_rest_of_line else self._text_of(piece)
                if joiner:
                    line = joiner.whole(line or b"")
                if line is not None:
                    self._undigested += held
                    held.clear()
                    yield line, end
            is_rest_of_line = not is_end
        self.has_open_end = is_rest_of_line

    def _begin_digest(self) -> None:
        """Begins a digest of the log's text."""
        self._digested = blake2b(digest_size=16)
        self._undigested: list[bytes] = []

    def digest(self) -> str:
        """Returns the digest of everything up to the end of the last line that `lines` has yielded.

        Call it from time to time, because the text is kept until then.
        """
        # In one piece, which takes half the time.
        self._digested.update(b"".join(self._undigested))
        self._undigested.clear()
        return self._digested.hexdigest()

    def _is_end(self, piece: bytes) -> bool:
        """Returns True if a line ends with the piece."""
        return arrays.is_whole(piece) if self._has_entries else piece.endswith(b"\n")

    def _text_of(self, piece: bytes) -> bytes:
        """Returns the line in a piece."""
        return arrays.entry_in(piece) if self._has_entries else piece[:-1].rstrip(b"\r")

    def digest_at(self, position: int) -> str | None:
        """Returns the digest of the log up to the position; None if the log ends before it."""
        state = blake2b(digest_size=16)
        remaining = position
        for piece in self._pieces():
            state.update(piece[:remaining])
            remaining -= len(piece)
            if remaining <= 0:
                return state.hexdigest()
        return None

    def identify(self, *, times: str = "", again: bool = False, dry_run: bool = False) -> None:
        """Finds the record of an earlier import of the file, or makes a new one. Sets `record`,
        `earlier`, `position` and `lost`.

        `times` are those that the command takes lines of. The file is judged from its start if that
        is asked for by `again`, or if the earlier import left out lines outside of other times.
        """
        imports = self._earlier_imports(dry_run=dry_run)
        self.lost = sum(imported.lost for imported in imports)
        is_complete = bool(imports) and imports[0].record.times in {"", times}
        if is_complete and not again:
            self.record = imports[0].record
            self.position = imports[0].position
            self.earlier = imports[1:]
            return
        self.record = Import(
            source=secrets.token_hex(8),
            name=self.name[-255:],
            first_line=self._first_line_digest(),
            digest=blake2b(digest_size=16).hexdigest(),
        )
        self.position = 0
        self.earlier = imports

    def records(self) -> list[Import]:
        """Returns the records of earlier imports of this file, the latest first."""
        if not self.first:
            return []
        found = Import.objects.filter(first_line=self._first_line_digest()).order_by("-pk")
        return [record for record in found if self.digest_at(record.position) == record.digest]

    def note_time(self, second: int) -> None:
        """Notes that the file has a line of that second (since 1970), for the record."""
        record = self.record
        if second > record.until:
            record.until = second
        if second < record.since or not record.since:
            record.since = second

    def _first_line_digest(self) -> str:
        """Returns the digest of the first line, by which records of imports are looked up."""
        return blake2b(self.first, digest_size=16).hexdigest()

    def _earlier_imports(self, *, dry_run: bool) -> list[Earlier]:
        """Returns the earlier imports of this file. The one that came furthest is first, and of
        several the latest. Batches that they were killed in are finished.
        """
        imports = []
        for record in Import.objects.filter(first_line=self._first_line_digest()):
            # A log that ends before the position cannot be compared, and is taken for an older
            # copy.
            if self.digest_at(record.position) in {record.digest, None}:
                resumed = ledger.resume(record, digest=self.digest_at, dry_run=dry_run)
                imports.append(Earlier(record, resumed.position, resumed.lost))
        return sorted(
            imports, key=lambda earlier: (earlier.position, earlier.record.pk), reverse=True
        )

    def _pieces(self) -> Iterator[bytes]:
        """Yields the lines from the start of the log, a line longer than LONGEST bytes in pieces;
        of JSON whose entries are not on a line each, the entries.

        Ends where a gzip file is damaged.
        """
        return self._sound(arrays.pieces_of if self._has_entries else _lines_of)

    def _sound(self, read: Callable[[BinaryIO], Iterator[bytes]]) -> Iterator[bytes]:
        """Yields what `read` yields of the uncompressed log, as far as the file is not damaged."""
        self._file.seek(0)
        stream: Any = gzip.GzipFile(fileobj=self._file) if self._is_compressed else self._file
        try:
            yield from read(stream)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            self.is_damaged = True


def _head_of(stream: BinaryIO) -> Iterator[bytes]:
    """Yields the first bytes of the stream."""
    yield stream.read(arrays.LONGEST_HEAD)


def _lines_of(stream: BinaryIO) -> Iterator[bytes]:
    """Yields the lines of the stream, a line longer than LONGEST bytes in pieces."""
    while piece := stream.readline(LONGEST):
        yield piece
