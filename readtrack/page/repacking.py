"""Streams that the site has packed by gzip: unpacked chunk by chunk to be filled in, and packed
again.

The limits of `packing.py` are those of a whole stream. Beyond them it is passed on as it is.
"""

import zlib
from collections.abc import Iterator

from readtrack.page import packing

PIECE = 2**20  # bytes of text that are packed at once where a stream is beyond the limits
SLICE = 2**16  # bytes of packed data that are unpacked at once there
# How many times as long as its data the text of a page may be that is sent at once. Text that is
# longer is probably made to exhaust memory, and waits until the limits are reached or not.
MOST_GROWTH = 100


class Repacker:
    """Unpacks the chunks of a stream, and packs them again."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(packing.GZIP)
        self._members = 1  # that have begun
        self._length = 0  # of the text so far
        self._packer = zlib.compressobj(wbits=packing.GZIP)
        self._held: list[bytes] | None = []  # the chunks, as long as nothing of them is sent
        self._text = b""  # unpacked, and neither returned nor sent
        self._data = b""  # of the last chunk, and not unpacked
        self.is_beyond_limits = False  # also if the data are not those of gzip
        self._passes_chunks_on = False  # as they are, without unpacking them

    def unpacked(self, chunk: bytes) -> bytes:
        """Returns the text of the chunk that may be filled in; b"" beyond the limits."""
        self._data = chunk
        if self.is_beyond_limits:
            return b""
        if self._held is not None:
            self._held.append(chunk)
        while self._data and not self.is_beyond_limits:
            self._text += self._next_text()
        if self.is_beyond_limits or self._has_to_wait():
            return b""
        return self.take_waiting()

    def take_waiting(self) -> bytes:
        """Removes the text that waits, and returns it."""
        text = self._text
        self._text = b""
        return text

    def packed(self, text: bytes) -> bytes:
        """Returns the text packed, to be sent at once."""
        self._held = None
        return self._packer.compress(text) + self._packer.flush(zlib.Z_SYNC_FLUSH)

    def untouched(self, waiting: bytes) -> Iterator[bytes]:
        """Yields what is to be sent of the last chunk of a stream beyond the limits.

        `waiting` is the text of earlier chunks that is not sent yet.
        """
        if self._passes_chunks_on:
            yield self._data
        elif self._held is not None:
            self._passes_chunks_on = True
            self._text = b""
            yield b"".join(self._held)
            self._held = None
        else:
            yield from self._rest_of_member(waiting)

    def last(self) -> bytes:
        """Returns the end of the packed stream."""
        if self._passes_chunks_on:
            return b""
        return self._packer.flush()

    def _next_text(self) -> bytes:
        """Returns text of `_data`, and removes from it what is unpacked."""
        if self._member.eof:
            self._data = self._data.lstrip(b"\0")  # files may be padded
            if not self._data:
                return b""
            if self._members == packing.MOST_MEMBERS:
                self.is_beyond_limits = True
                return b""
            self._members += 1
            self._member = zlib.decompressobj(packing.GZIP)
        try:
            text = self._member.decompress(self._data, packing.LONGEST_TEXT + 1 - self._length)
        except zlib.error:  # these are no data of gzip
            self.is_beyond_limits = True
            return b""
        self._data = self._member.unconsumed_tail or self._member.unused_data
        self._length += len(text)
        if self._length > packing.LONGEST_TEXT:
            self.is_beyond_limits = True
            packing.warn_of_length()
        return text

    def _has_to_wait(self) -> bool:
        """Returns True if nothing is sent yet, and the text so far may exhaust memory on purpose.

        Also notes data that are beyond the limits before they have any text.
        """
        if self._held is None:
            return False
        held_bytes = sum(map(len, self._held))
        if held_bytes > packing.LONGEST_TEXT:  # a header without an end, say
            self.is_beyond_limits = True
        return self._length > MOST_GROWTH * held_bytes

    def _rest_of_member(self, waiting: bytes) -> Iterator[bytes]:
        """Yields the text of the member, packed piece by piece, and then the data behind it.

        The beginning of the member was packed anew. Gzip's data refer to what is before them, so
        the rest of the member has to be packed anew, too.
        """
        text = waiting + self.take_waiting()
        if text:
            yield self.packed(text)
        data = self._data
        for start in range(0, len(data), SLICE):
            self._data = data[start : start + SLICE]
            for piece in self._pieces():
                yield self.packed(piece)
            if self._passes_chunks_on:
                yield self._packer.flush()
                yield self._data + data[start + SLICE :]
                return

    def _pieces(self) -> Iterator[bytes]:
        """Yields the text of `_data` up to the end of the member. The chunks are raw behind it."""
        while self._data and not self._member.eof:
            try:
                yield self._member.decompress(self._data, PIECE)
            except zlib.error:
                break
            self._data = self._member.unconsumed_tail or self._member.unused_data
        self._passes_chunks_on = bool(self._data) or self._member.eof
