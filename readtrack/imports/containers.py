"""Lines that a container runtime has cut into pieces: CRI-O and containerd after 8 or 16 KiB,
Docker after 16 KiB.
"""

import json
import re
from contextlib import suppress

# CRI: time, stream, P for a piece or F for the last one, perhaps further tags.
_CRI = re.compile(rb"\S{10,40} (stdout|stderr) ([FP])(?::\S*)? ")
_DOCKER = b'{"log":'
_END_OF_DOCKERS_LINE = b'\\n","'  # the text ends its line
MOST_PIECES = 64  # a line of more pieces is malformed


class Joiner:
    """Joins pieces to lines. Each stream of a container has its own."""

    def __init__(self) -> None:
        self._pieces: dict[bytes, list[bytes]] = {}  # by stream

    def whole(self, raw: bytes) -> bytes | None:
        """Returns the line that this one is or ends; None for a piece that ends no line."""
        match = _CRI.match(raw)
        if match:
            return self._joined(raw, match[1], raw[match.end() :], is_last=match[2] == b"F")
        if raw.startswith(_DOCKER) and (self._pieces or _END_OF_DOCKERS_LINE not in raw):
            return self._joined_by_docker(raw)
        return raw

    def _joined_by_docker(self, raw: bytes) -> bytes | None:
        """Returns the line that an entry of docker's JSON is or ends; None if it ends none."""
        with suppress(ValueError, RecursionError, KeyError, AttributeError):
            entry = json.loads(raw)
            text = entry["log"].encode(errors="replace")
            stream = str(entry.get("stream")).encode(errors="replace")
            return self._joined(raw, stream, text, is_last=text.endswith(b"\n"))
        return raw

    def _joined(self, raw: bytes, stream: bytes, text: bytes, *, is_last: bool) -> bytes | None:
        """Returns the line that ends with this text of the stream; None if it goes on.

        A line of one piece is returned as it was.
        """
        pieces = self._pieces.get(stream, [])
        if not is_last:
            if len(pieces) < MOST_PIECES:
                self._pieces[stream] = [*pieces, text]
            return None
        if not pieces:
            return raw
        del self._pieces[stream]
        return b"".join([*pieces, text]).rstrip(b"\r\n")


def joiner_of(first_line: bytes) -> Joiner | None:
    """Returns what joins the lines of a log that begins so; None for one of no container."""
    is_of_container = first_line.startswith(_DOCKER) or _CRI.match(first_line)
    return Joiner() if is_of_container else None
