"""Streamed responses, which are filled in part by part."""

import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connections

from readtrack.page import branches, contents, packing
from readtrack.page.filling import FindReader, filled
from readtrack.page.placeholders import MARK, MAY_QUERY, placeholders_in, spots_in
from readtrack.page.rendering import NO_SCRIPT_TAG, ScriptTag
from readtrack.store import keys

Result = TypeVar("Result")

# The beginning of a placeholder whose end is in the next part of a stream.
BEGUN = re.compile(
    rb"!(?:r(?:t(?:!(?:[a-z]{1,6}(?:![^!\s]{0,4000}(?:![\da-z@-]{0,40}(?:![\w-]{0,16})?)?)?)?)?)?)?\Z"
)
# Bytes that wait for the end of their `if_unread`. After them it is taken for one without an end.
LONGEST_WAIT = 2**18


def fill(response: Any, find_reader: FindReader, *, tag: ScriptTag = NO_SCRIPT_TAG) -> None:
    """Has the parts of a streamed response filled in, each in one round trip."""
    if response.has_header("Content-Length"):
        del response["Content-Length"]
    is_packed = contents.packed_by(response) == "gzip"
    stream = Stream(cache(find_reader), tag=tag, is_packed=is_packed)
    replace = stream.afilled if response.is_async else stream.filled
    response.streaming_content = replace(response.streaming_content)


class Stream:
    """A streamed response. The beginning of a placeholder, or of an `if_unread`, waits for the next
    part.
    """

    def __init__(
        self, find_reader: FindReader, *, tag: ScriptTag = NO_SCRIPT_TAG, is_packed: bool = False
    ) -> None:
        """`is_packed` says that the parts are those of gzip's data, and are to be."""
        self._waiting = b""
        self._unpacker = zlib.decompressobj(packing.GZIP) if is_packed else None
        self._packer = zlib.compressobj(wbits=packing.GZIP) if is_packed else None
        # Parts of an asynchronous stream are looked through in a thread that knows no tenant.
        self._salt = keys.salt("placeholder")
        fill_in = partial(filled, find_reader=find_reader, salt=self._salt, tag=tag)
        # In the page's context, so that it still waits for Redis no longer than the page has left.
        self._fill_in: Callable[[bytes], bytes] = partial(copy_context().run, fill_in)

    def filled(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            whole = self._whole(part)
            if MARK in whole:
                whole = self._fill_in(whole)
            if whole:
                yield self._packed(whole)
        yield from self._last(self._fill_in(self._waiting))

    async def afilled(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for part in parts:
            whole = await self._afilled(self._whole(part))
            if whole:
                yield self._packed(whole)
        for last in self._last(await self._afilled(self._waiting)):
            yield last

    async def _afilled(self, whole: bytes) -> bytes:
        if MARK not in whole:
            return whole
        # A tenant is that of the connection to SQL of Django's own thread.
        is_sensitive = bool(keys.tenant_function() or MAY_QUERY.search(whole))
        return await in_thread(self._fill_in, whole, is_sensitive=is_sensitive)

    def _whole(self, part: bytes) -> bytes:
        """Returns what came so far without what has only begun, which is kept."""
        content = self._waiting + self._unpacked(part)
        self._waiting = b""
        start = self._start_of_waiting(content)
        if start is None:
            return content
        self._waiting = content[start:]
        return content[:start]

    def _start_of_waiting(self, content: bytes) -> int | None:
        """Returns where a placeholder or an `if_unread` begins that has no end yet, or None."""
        if MARK in content:
            start = branches.first_without_end(spots_in(content, self._salt))
            if start is not None and len(content) - start <= LONGEST_WAIT:
                return start
        last = content[max(0, content.rfind(MARK)) :]
        if last in placeholders_in(last, self._salt):
            return None
        begun = BEGUN.search(content)
        return begun.start() if begun else None

    def _unpacked(self, part: bytes) -> bytes:
        if self._unpacker is None:
            return part
        text = b""
        while part:
            if self._unpacker.eof:
                self._unpacker = zlib.decompressobj(packing.GZIP)
            try:
                text += self._unpacker.decompress(part)
            except zlib.error:  # the header is wrong
                self._unpacker = self._packer = None
                return text + part
            part = self._unpacker.unused_data
        return text

    def _packed(self, part: bytes) -> bytes:
        if not self._packer:
            return part
        return self._packer.compress(part) + self._packer.flush(zlib.Z_SYNC_FLUSH)

    def _last(self, part: bytes) -> Iterator[bytes]:
        """Yields what is left at the end."""
        if part:
            yield self._packed(part)
        if self._packer:
            yield self._packer.flush()


async def in_thread(work: Callable[..., Result], *args: Any, is_sensitive: bool) -> Result:
    """Returns the result of the work in Django's own thread, which closes its connections to SQL,
    or in any other.
    """
    run = work if is_sensitive else partial(closing, work)
    return await sync_to_async(run, thread_sensitive=is_sensitive)(*args)


def asked(work: Callable[[], Result]) -> Result:
    """Returns the result of work that may query SQL, which Django refuses in a coroutine.

    A template that an async view renders waits for another thread.
    """
    try:
        return work()
    except SynchronousOnlyOperation:
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(copy_context().run, closing, work).result()


def closing(work: Callable[..., Result], *args: Any) -> Result:
    """Returns the result of the work, and closes the thread's connections to SQL."""
    try:
        return work(*args)
    finally:
        connections.close_all()
