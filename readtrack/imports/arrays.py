"""Files of JSON whose entries are not on a line each: arrays of entries, the `records` of Azure's
event hubs, and entries on several lines.
"""

import json
import re
from collections.abc import Iterator
from typing import BinaryIO

LONGEST_HEAD = 1024  # bytes at the start of a file that show whether it is one of these
READ_AT_ONCE = 65_536
LONGEST = 1 << 20  # bytes of an entry; a longer one is malformed

_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\[\s*\{|\{\s*"records"\s*:\s*\[|\{\s*\n)')
# What may be between two entries.
_BETWEEN = re.compile(r'(?:[\s,\[\]}]|\xef\xbb\xbf|\{\s*"records"\s*:\s*(?=\[))*')
_decoder = json.JSONDecoder()


def has_entries(head: bytes) -> bool:
    """Returns True if the file that begins so is one whose entries are not on a line each."""
    return _HEAD.match(head) is not None


def pieces_of(stream: BinaryIO) -> Iterator[bytes]:
    """Yields the stream in pieces. Each has one entry and what is before it; the last one also has
    what is behind it. An entry without an end is a piece that `is_whole` tells from others.

    Text that is no entry is a piece up to the end of its line.
    """
    text = ""
    held = ""  # the last piece, until it is known that another one follows
    while chunk := stream.read(READ_AT_ONCE):
        text += chunk.decode("latin-1")  # one character for each byte, because positions are bytes
        start = 0
        while end := _end_of_piece(text, start):
            if held:
                yield held.encode("latin-1")
            held = text[start:end]
            start = end
        text = text[start:]
    if _end_of_gap(text, 0) == len(text):  # it only ends the array
        held += text
        text = ""
    for piece in (held, text):
        if piece:
            yield piece.encode("latin-1")


def is_whole(piece: bytes) -> bool:
    """Returns False for an entry without an end."""
    return piece.endswith(b"\n") or entry_in(piece) is not piece


def entry_in(piece: bytes) -> bytes:
    """Returns the entry of a piece; the piece itself if it has none."""
    text = piece.decode("latin-1")
    begun = _end_of_gap(text, 0)
    try:
        _entry, end = _decoder.raw_decode(text, begun)
    except (ValueError, RecursionError):
        return piece
    return text[begun:end].encode("latin-1")


def _end_of_gap(text: str, start: int) -> int:
    """Returns where the next entry begins."""
    match = _BETWEEN.match(text, start)
    return match.end() if match else start


def _end_of_piece(text: str, start: int) -> int:
    """Returns where the piece ends that begins there; 0 if more has to be read."""
    begun = _end_of_gap(text, start)
    if begun == len(text):
        return 0
    if text[begun] == "{":
        try:
            _entry, end = _decoder.raw_decode(text, begun)
        except ValueError:
            return len(text) if len(text) - begun > LONGEST else 0
        except RecursionError:
            pass
        else:
            return end
    return text.find("\n", begun) + 1
