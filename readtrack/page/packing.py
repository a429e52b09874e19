"""Bodies that a view's decorator has packed, by the name in Content-Encoding.

Of `br` and `zstd` the package is needed that packed them.
"""

import zlib
from collections.abc import Callable
from importlib import import_module
from io import BytesIO

from readtrack.conf import cached_setting, logger

# Bytes of a packed page that are unpacked. A megabyte may hold a gigabyte, and a page is held in
# memory twice while it is filled in.
LONGEST_TEXT = 10 * 2**20
# Parts that gzip's data may have. Each takes a copy of the data behind it.
MOST_MEMBERS = 16
# Memory that zstd's data may ask for, as a power of two: 8 MiB, as RFC 9659 wants it of pages.
LONGEST_WINDOW = 23
GZIP = zlib.MAX_WBITS | 16  # the format, as zlib is told it


def unpacked(content: bytes, encoding: str) -> bytes | None:
    """Returns the text of packed data; None for other data, for a text above LONGEST_TEXT, and
    without the package for it.
    """
    try:
        text = UNPACKERS[encoding](content)
    except Exception:  # each package has errors of its own, and the page is made already
        return None
    if len(text) > LONGEST_TEXT:
        warn_of_length()
        return None
    return text


@cached_setting()  # once in a process
def warn_of_length() -> None:
    """Logs that a packed page is too long to be filled in."""
    logger.warning(
        "A page of more than %s bytes that the site packed stays as it is, with the placeholders"
        " of its counts and dots: pack it by a middleware above readtrack's.",
        f"{LONGEST_TEXT:,}",
    )


# Each of these functions returns the text of the data, or of longer data more than LONGEST_TEXT of
# it. They raise for other data.


def _of_gzip(content: bytes) -> bytes:
    # Not by the module gzip, which unpacks without a limit.
    text = b""
    data = content
    for _ in range(MOST_MEMBERS):
        member = zlib.decompressobj(GZIP)
        text += member.decompress(data, LONGEST_TEXT + 1 - len(text))
        if len(text) > LONGEST_TEXT:
            return text
        if not member.eof:
            raise ValueError("The data break off.")
        data = member.unused_data.lstrip(b"\0")  # files may be padded
        if not data:
            return text
    raise ValueError(f"The data have more than {MOST_MEMBERS} members.")


def _of_deflate(content: bytes) -> bytes:
    # RFC 9110 wants the format of zlib. Some programs leave its header out, which zlib is told by a
    # negative number.
    has_header = content[:1] == b"\x78"
    window = zlib.MAX_WBITS
    if not has_header:
        window = -zlib.MAX_WBITS
    unpacker = zlib.decompressobj(window)
    text = unpacker.decompress(content, LONGEST_TEXT + 1)
    if not unpacker.eof and len(text) <= LONGEST_TEXT:
        raise ValueError("The data break off.")
    return text


def _of_brotli(content: bytes) -> bytes:
    decompressor = import_module("brotli").Decompressor()
    text: bytes = decompressor.process(content, output_buffer_limit=LONGEST_TEXT)
    if not decompressor.is_finished():
        raise ValueError("The data break off, or the text is too long.")
    return text


def _of_zstd(content: bytes) -> bytes:
    """Returns the text that was packed by zstd, as far as one byte behind the longest text."""
    file = BytesIO(content)
    try:
        package = import_module("compression.zstd")  # Python 3.14
    except ImportError:
        package = import_module("zstandard")
        decompressor = package.ZstdDecompressor(max_window_size=2**LONGEST_WINDOW)
        reader = decompressor.stream_reader(file, read_across_frames=True)
    else:
        window = package.DecompressionParameter.window_log_max
        reader = package.ZstdFile(file, options={window: LONGEST_WINDOW})
    text: bytes = reader.read(LONGEST_TEXT + 1)
    return text


UNPACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": _of_gzip,
    "deflate": _of_deflate,
    "br": _of_brotli,
    "zstd": _of_zstd,
}
