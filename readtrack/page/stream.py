"""Streamed responses, which are filled in part by part."""

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

# The beginning of a placeholder whose end is in the next part of a stream.
BEGUN = re.compile(
    rb"!(?:r(?:t(?:!(?:[a-z]{1,6}(?:![^!\s]{0,4000}(?:!\d{0,19}(?:![\w-]{0,16})?)?)?)?)?)?)?\Z"
)


def fill(response: Any, find_reader: FindReader) -> None:
    """Has the parts of a streamed response filled in, each in one round trip."""
    stream = Stream(cache(find_reader))
    replace = stream.afilled if response.is_async else stream.filled
    response.streaming_content = replace(response.streaming_content)


class Stream:
    """A streamed response. The beginning of a placeholder waits for the next part."""

    def __init__(self, find_reader: FindReader) -> None:
        self._begun = b""
        self._branches: list[bool] = []
        # Parts of an asynchronous stream are looked through in a thread that knows no tenant.
        self._salt = keys.salt("placeholder")
        fill_in = partial(filled, find_reader=find_reader, branches=self._branches, salt=self._salt)
        # In the page's context, so that it still waits for Redis no longer than the page has left.
        self._fill_in: Callable[[bytes], bytes] = partial(copy_context().run, fill_in)

    def filled(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            whole = self._whole(part)
            if whole:
                yield self._fill_in(whole)
        if self._begun:
            yield self._fill_in(self._begun)

    async def afilled(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for part in parts:
            whole = self._whole(part)
            if MARK in whole or (whole and self._branches):
                # A tenant is that of the connection to SQL of Django's own thread.
                is_sensitive = bool(keys.tenant_function() or MAY_QUERY.search(whole))
                whole = await in_thread(self._fill_in, whole, is_sensitive=is_sensitive)
            if whole:
                yield whole
        if self._begun:  # no placeholder, so nobody is asked
            yield self._fill_in(self._begun)

    def _whole(self, part: bytes) -> bytes:
        """Returns what came so far without a placeholder that has only begun, which is kept."""
        content = self._begun + part
        last = content[max(0, content.rfind(MARK)) :]
        self._begun = b""
        is_whole = last in placeholders_in(last, self._salt)
        begun = None if is_whole else BEGUN.search(content)
        if begun:
            self._begun = begun[0]
        return content.removesuffix(self._begun)


async def in_thread(work: Callable[..., Result], *args: Any, is_sensitive: bool) -> Result:
    """Returns the result of the work in Django's own thread, which closes its connections to SQL,
    or in any other.
    """

    def run() -> Result:
        try:
            return work(*args)
        finally:
            if not is_sensitive:
                connections.close_all()

    return await sync_to_async(run, thread_sensitive=is_sensitive)()
