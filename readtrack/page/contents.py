"""The content of a response: read to be filled in, unpacked if it is packed, and written back."""

import codecs
import re
from io import BytesIO
from typing import Any

from django.http import HttpRequest
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.text import compress_string

from readtrack.hits import visitors
from readtrack.page import packing
from readtrack.page.placeholders import MARK

# Types of streams, packed bodies and files in memory in which no template's text is looked for.
NO_TEXT = re.compile(
    r"image/(?!svg)|audio/|video/|font/|application/(?:pdf|zip|gzip|vnd\.openxml)|multipart/byter",
    re.IGNORECASE,
)
UNKNOWN_YET = b""  # the text of a stream, whose placeholders are looked for while it is sent
WIDE = re.compile("utf-(?:16|32)")  # names of charsets whose letters take two bytes or more


def text_of(response: Any) -> bytes | None:
    """Returns the content to fill in: the text of a response with placeholders, or UNKNOWN_YET for
    a stream that templates may have made.

    The text is in UTF-8, or in a charset that has the letters of ASCII. Returns None for a response
    without placeholders.
    """
    if response.streaming:
        return _text_of_stream(response)
    content: bytes = response.content
    encoding = packed_by(response)
    if encoding:
        content_type = _type_of(response)
        if NO_TEXT.match(content_type) or content_type.startswith("application/octet-stream"):
            return None
        return _with_mark(packing.unpacked(content, encoding))
    # Not by `in`, which takes twice as long, because bytes first try to take bytes for a number.
    if content.find(MARK) >= 0:
        return content
    if content.find(b"\0", 0, 4) >= 0:  # as in a wide charset, whose name takes longer to look up
        return _with_mark(_narrow(content, response))
    return None


def _text_of_stream(response: Any) -> bytes | None:
    """Returns UNKNOWN_YET for a stream that templates may have made, the text of a file in memory
    that has placeholders, and None for any other stream.
    """
    content_type = _type_of(response)
    if NO_TEXT.match(content_type):
        return None
    if response.has_header("Content-Encoding") and packed_by(response) != "gzip":
        return None  # other packings are unpacked only in responses that are no streams
    file = getattr(response, "file_to_stream", None)
    if file is not None:
        return _text_of_file(file)
    if response.has_header("Content-Length") and not content_type.startswith("text/"):
        return None  # a stream that knows its length already was not made by templates
    return UNKNOWN_YET


def _text_of_file(file: Any) -> bytes | None:
    """Returns what is to be sent of a file in memory, if it has placeholders.

    Returns None for any other file, because the server may send it by itself.
    """
    memory = getattr(file, "file", file)  # Django's ContentFile has the one in memory inside
    if not isinstance(memory, BytesIO):
        return None
    return _with_mark(memory.getvalue()[file.tell() :])


def _with_mark(text: bytes | None) -> bytes | None:
    """Returns the text if it has placeholders, else None."""
    if text and MARK in text:
        return text
    return None


def _type_of(response: Any) -> str:
    """Returns the response's content type, or ""."""
    return str(response.headers.get("Content-Type", ""))


def packed_by(response: Any) -> str:
    """Returns what has packed the body, such as `gzip` of Django's decorator; "" for a plain body,
    and for what cannot be unpacked.
    """
    headers = getattr(response.headers, visitors.HEADERS_ATTRIBUTE, None)
    if headers is not None and "content-encoding" not in headers:  # the fastest way to see that
        return ""
    encoding = str(response.headers.get("Content-Encoding", "")).lower()
    if encoding not in packing.UNPACKERS:
        return ""
    return encoding


def _narrow(content: bytes, response: Any) -> bytes | None:
    """Returns the text in UTF-8 if the response is in a wide charset, else None."""
    charset = _wide_charset(response)
    if not charset:
        return None
    try:
        return content.decode(charset).encode()
    except UnicodeError:
        return None


def _wide_charset(response: Any) -> str:
    """Returns the response's charset if it is a wide one, else ""."""
    charset = str(response.charset)
    try:
        usual_name = codecs.lookup(charset).name
    except LookupError:
        return ""
    if not WIDE.match(usual_name):
        return ""
    return charset


def is_json(response: Any) -> bool:
    """Returns True for a response of JSON."""
    return "json" in response.get("Content-Type", "")


def charset_of(response: Any) -> str:
    """Returns the charset for what is filled in: "utf-8", or "ascii" for another charset.

    All charsets have the letters of ASCII in common. References such as `&#233;` stand for other
    letters.
    """
    content_type = response.get("Content-Type", "")
    if content_type.endswith("utf-8") or response.charset.lower() == "utf-8":
        return "utf-8"
    return "ascii"


def put(response: Any, content: bytes, request: HttpRequest) -> None:
    """Gives the response the content, packed as its own content was, or by gzip."""
    if response.streaming:  # a file in memory
        response.streaming_content = [content]
    else:
        content = _sent(content, response, request)
        response.content = content
    if response.has_header("Content-Length"):
        response["Content-Length"] = str(len(content))


def _sent(content: bytes, response: Any, request: HttpRequest) -> bytes:
    """Returns the content as it is sent: packed, or in the response's charset. Sets the header
    Content-Encoding.
    """
    encoding = packed_by(response)
    if encoding:
        if encoding != "gzip" and "gzip" not in request.META.get("HTTP_ACCEPT_ENCODING", ""):
            del response["Content-Encoding"]
            return content
        response["Content-Encoding"] = "gzip"
        # With random bytes, as Django's GZipMiddleware adds them against the attack BREACH.
        return compress_string(content, max_random_bytes=100)
    is_wide = MARK not in response.content  # whose bytes are not those of ASCII
    if is_wide:
        return content.decode().encode(_wide_charset(response))
    return content


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
