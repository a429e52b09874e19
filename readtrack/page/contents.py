"""The content of a response: read to be filled in, unpacked if gzip packed it, and written back."""

import zlib
from typing import Any

from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.text import compress_string

from readtrack.conf import cached_setting, logger
from readtrack.hits import visitors
from readtrack.page.placeholders import MARK

GZIP = b"\x1f\x8b"  # the first bytes of gzip's data
# Bytes up to which a packed page is unpacked. A megabyte may hold a gigabyte, and a page is held in
# memory twice while it is filled in.
LONGEST_TEXT = 10 * 2**20
MEMBERS = 16  # members (parts of gzip's data) to unpack; each of them copies the data behind it


def text_of(response: Any) -> bytes | None:
    """Returns the content to fill in: the bytes of a response with placeholders, b"" for a stream.

    Returns None for a response that cannot have placeholders in it.
    """
    if response.streaming:
        # The server may send a file by itself.
        is_file = getattr(response, "file_to_stream", None) is not None
        return b"" if not is_file and _is_text(response) else None
    content: bytes = response.content
    is_packed = content.startswith(GZIP)
    # The content is searched first, because to look up the header takes longer.
    if MARK not in content and not is_packed:
        return None
    if not _is_text(response):
        return None
    if is_packed and response.get("Content-Encoding") == "gzip":  # by Django's gzip_page decorator
        content = unpacked(content)
    return content if MARK in content else None


def _is_text(response: Any) -> bool:
    content_type = response.headers.get("Content-Type", "")
    return "text/" in content_type or "json" in content_type or "xml" in content_type


def unpacked(content: bytes) -> bytes:
    """Returns the text in gzip's data; b"" for more than LONGEST_TEXT, and for broken data."""
    text = b""
    for _ in range(MEMBERS):  # not by the module gzip, which unpacks without a limit
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)  # 16 stands for gzip's format
        try:
            text += member.decompress(content, LONGEST_TEXT + 1 - len(text))
        except zlib.error:  # the header is wrong
            return b""
        if len(text) > LONGEST_TEXT:
            _warn_of_length()
            return b""
        content = member.unused_data.lstrip(b"\0")  # files may be padded
        if not content:
            return text if member.eof else b""
    return b""


@cached_setting()  # once in a process
def _warn_of_length() -> None:
    logger.warning(
        "A page of more than %s bytes that the site packed by gzip stays as it is, with the"
        " placeholders of its counts and dots: pack it behind readtrack's middleware.",
        f"{LONGEST_TEXT:,}",
    )


def is_json(response: Any) -> bool:
    """Returns True for a response of JSON."""
    return "json" in response.get("Content-Type", "")


def charset_of(response: Any) -> str:
    """Returns the charset for what is filled in: "utf-8", or "ascii" for another charset.

    All charsets have the letters of ASCII in common. References such as `&#233;` stand for other
    letters.
    """
    content_type = response.get("Content-Type", "")
    is_utf_8 = content_type.endswith("utf-8") or response.charset.lower() == "utf-8"
    return "utf-8" if is_utf_8 else "ascii"


def put(response: Any, content: bytes) -> None:
    """Sets the content of the response, packed by gzip if its own content was."""
    if response.get("Content-Encoding", "") == "gzip":
        # With random bytes against the attack BREACH, as Django's GZipMiddleware does.
        content = compress_string(content, max_random_bytes=100)
    response.content = content
    if response.has_header("Content-Length"):
        response["Content-Length"] = str(len(response.content))


def keep_apart(response: Any, *, is_personal: bool) -> None:
    """Sets the headers that keep caches from giving one reader's page to another reader.

    The view's validators (ETag, Last-Modified) are removed, because they do not change with dots. A
    page `is_personal` if it has dots or numbers of its reader; no cache may keep it.
    """
    patch_vary_headers(response, ["Cookie"])
    headers_to_remove = ["ETag", "Last-Modified"]
    if is_personal:
        # The view may let browsers keep the page, as cache_page does. Then its dots would stay lit
        # as long.
        patch_cache_control(response, private=True, max_age=0)
        headers_to_remove += ["Expires", *visitors.headers_for_cdns(response)]
    for header in headers_to_remove:
        del response[header]
