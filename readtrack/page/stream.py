"""Streamed responses: they come in chunks, which are filled in one by one."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connections

from readtrack import layouts
from readtrack.page import branches, contents
from readtrack.page.filling import FindReader, filled
from readtrack.page.placeholders import MARK, MAY_QUERY, placeholders_in, spots_in
from readtrack.page.rendering import NO_DELIVERY, Delivery
from readtrack.page.repacking import Repacker
from readtrack.store import keys

Result = TypeVar("Result")

# The beginning of a placeholder whose end is in the next chunk of a stream.
BEGUN = re.compile(
    rb"!(?:r(?:t(?:!(?:[a-z]{1,6}"
    rb"(?:![^!\s]{0,4000}(?:![\da-z@-]{0,40}(?:![\w-]{0,16})?)?)?)?)?)?)?\Z"
)
# Bytes that wait for the end of their `if_unread`. After them it is taken for one without an end.
LONGEST_WAIT = 2**18


def fill(response: Any, find_reader: FindReader, *, delivery: Delivery = NO_DELIVERY) -> None:
    """Has the chunks of a streamed response filled in, each in one round trip to Redis."""
    if response.has_header("Content-Length"):
        del response["Content-Length"]
    is_packed = contents.packed_by(response) == "gzip"
    stream = Stream(cache(find_reader), delivery=delivery, is_packed=is_packed)
    chunks = response.streaming_content
    if response.is_async:
        response.streaming_content = stream.afilled(chunks)
    else:
        response.streaming_content = stream.filled(chunks)


class Stream:
    """A streamed response. A placeholder that a chunk cuts, and an `if_unread`, wait for the next
    chunk.
    """

    def __init__(
        self,
        find_reader: FindReader,
        *,
        delivery: Delivery = NO_DELIVERY,
        is_packed: bool = False,
    ) -> None:
        """`is_packed` says that the chunks are those of gzip's data, and are to be."""
        self._waiting = b""  # the beginning of what the last chunk cut
        self._repacker: Repacker | None = None
        if is_packed:
            self._repacker = Repacker()
        # Asynchronous streams are searched in a thread that knows no tenant.
        self._salt = keys.salt(layouts.PLACEHOLDER)
        fill_in = partial(filled, find_reader=find_reader, salt=self._salt, delivery=delivery)
        # In the page's context, so that it waits for Redis no longer than the page may.
        self._fill_in: Callable[[bytes], bytes] = partial(copy_context().run, fill_in)

    def filled(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the chunks, filled in."""
        for chunk in chunks:
            content = self._content_up_to(chunk)
            if MARK in content:
                content = self._fill_in(content)
            if content:
                yield self._packed(content)
            yield from self._untouched()
        yield from self._last(self._fill_in(self._rest()))

    async def afilled(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yields the chunks, filled in. It waits for Redis and SQL in a thread."""
        async for chunk in chunks:
            content = await self._afilled(self._content_up_to(chunk))
            if content:
                yield self._packed(content)
            for untouched in self._untouched():
                yield untouched
        for last in self._last(await self._afilled(self._rest())):
            yield last

    async def _afilled(self, content: bytes) -> bytes:
        """Returns the content, filled in by a thread."""
        if MARK not in content:
            return content
        # The tenant may be that of the connection to SQL in Django's own thread.
        is_sensitive = bool(keys.tenant_function() or MAY_QUERY.search(content))
        return await in_thread(self._fill_in, content, is_sensitive=is_sensitive)

    def _content_up_to(self, chunk: bytes) -> bytes:
        """Returns the content to fill in: what was kept, and the chunk up to what it cuts.

        The beginning of that is kept for the next chunk.
        """
        content = self._waiting + self._unpacked(chunk)
        self._waiting = b""
        start = self._start_of_cut(content)
        if start is None:
            return content
        self._waiting = content[start:]
        return content[:start]

    def _start_of_cut(self, content: bytes) -> int | None:
        """Returns where a placeholder or an `if_unread` begins that has no end yet, or None."""
        if MARK in content:
            start = branches.first_without_end(spots_in(content, self._salt))
            if start is not None and len(content) - start <= LONGEST_WAIT:
                return start
        from_last_mark = content[max(0, content.rfind(MARK)) :]
        is_whole = from_last_mark in placeholders_in(from_last_mark, self._salt)
        if is_whole:
            return None
        begun_placeholder = BEGUN.search(content)
        if begun_placeholder is None:
            return None
        return begun_placeholder.start()

    def _unpacked(self, chunk: bytes) -> bytes:
        """Returns the text of a chunk."""
        if self._repacker is None:
            return chunk
        return self._repacker.unpacked(chunk)

    def _packed(self, chunk: bytes) -> bytes:
        """Returns text as it is sent."""
        if self._repacker is None:
            return chunk
        return self._repacker.packed(chunk)

    def _untouched(self) -> Iterator[bytes]:
        """Yields what is sent as it is of a packed stream that is too long to be filled in."""
        if self._repacker and self._repacker.is_beyond_limits:
            waiting = self._waiting
            self._waiting = b""
            yield from self._repacker.untouched(waiting)

    def _rest(self) -> bytes:
        """Returns the content that still waits at the end."""
        if self._repacker is None:
            return self._waiting
        return self._waiting + self._repacker.take_waiting()

    def _last(self, chunk: bytes) -> Iterator[bytes]:
        """Yields what is left at the end."""
        if chunk:
            yield self._packed(chunk)
        if self._repacker:
            yield self._repacker.last()


async def in_thread(work: Callable[..., Result], *args: Any, is_sensitive: bool) -> Result:
    """Returns the result of the work, which runs in a thread.

    If it `is_sensitive`, that is Django's own thread, whose connections to SQL Django closes.
    Otherwise it is any thread, and its connections are closed here.
    """
    if is_sensitive:
        return await sync_to_async(work)(*args)
    return await sync_to_async(closing, thread_sensitive=False)(work, *args)


def outside_coroutine(work: Callable[[], Result]) -> Result:
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
