"""Streamed responses: they come in chunks, which are filled in one by one."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextvars import copy_context
from functools import cache, partial
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

from readtrack.page.filling import FindReader, filled
from readtrack.page.placeholders import MARK, MAY_QUERY, placeholders_in
from readtrack.store import keys

Result = TypeVar("Result")

# The beginning of a placeholder whose end is in the next chunk of a stream.
BEGUN = re.compile(
    rb"!(?:r(?:t(?:!(?:[a-z]{1,6}(?:![^!\s]{0,4000}(?:!\d{0,19}(?:![\w-]{0,16})?)?)?)?)?)?)?\Z"
)


def fill(response: Any, find_reader: FindReader) -> None:
    """Has the chunks of a streamed response filled in, each in one round trip to Redis."""
    stream = Stream(cache(find_reader))
    fill_chunks = stream.afilled if response.is_async else stream.filled
    response.streaming_content = fill_chunks(response.streaming_content)


class Stream:
    """A streamed response. A placeholder that a chunk cuts waits for the next chunk."""

    def __init__(self, find_reader: FindReader) -> None:
        self._begun = b""  # the beginning of a placeholder that the last chunk cut
        self._branches: list[bool] = []  # of `if_unread`, see Filling
        # Asynchronous streams are searched in a thread that knows no tenant.
        self._salt = keys.salt("placeholder")
        fill_in = partial(filled, find_reader=find_reader, branches=self._branches, salt=self._salt)
        # In the page's context, so that it waits for Redis no longer than the page may.
        self._fill_in: Callable[[bytes], bytes] = partial(copy_context().run, fill_in)

    def filled(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the chunks, filled in."""
        for chunk in chunks:
            content = self._content_up_to(chunk)
            if content:
                yield self._fill_in(content)
        if self._begun:
            yield self._fill_in(self._begun)

    async def afilled(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yields the chunks, filled in. It waits for Redis and SQL in a thread."""
        async for chunk in chunks:
            content = self._content_up_to(chunk)
            if MARK in content or (content and self._branches):
                # The tenant may be that of the connection to SQL in Django's own thread.
                is_sensitive = bool(keys.tenant_function() or MAY_QUERY.search(content))
                content = await in_thread(self._fill_in, content, is_sensitive=is_sensitive)
            if content:
                yield content
        if self._begun:  # text that only looks like a placeholder, so nothing has to be waited for
            yield self._fill_in(self._begun)

    def _content_up_to(self, chunk: bytes) -> bytes:
        """Returns the content to fill in: what was kept, and the chunk up to a cut placeholder.

        The beginning of the cut placeholder is kept for the next chunk.
        """
        content = self._begun + chunk
        self._begun = b""
        from_last_mark = content[max(0, content.rfind(MARK)) :]
        is_whole = from_last_mark in placeholders_in(from_last_mark, self._salt)
        if is_whole:
            return content
        begun = BEGUN.search(content)
        if begun:
            self._begun = begun[0]
        return content.removesuffix(self._begun)


async def in_thread(work: Callable[..., Result], *args: Any, is_sensitive: bool) -> Result:
    """Returns the result of the work, which runs in a thread.

    If it `is_sensitive`, that is Django's own thread, whose connections to SQL Django closes.
    Otherwise it is any thread, and its connections are closed here.
    """

    def run() -> Result:
        try:
            return work(*args)
        finally:
            if not is_sensitive:
                connections.close_all()

    return await sync_to_async(run, thread_sensitive=is_sensitive)()
