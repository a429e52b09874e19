"""Counts the views of pages that Wagtail serves."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase

from readtrack.subjects import has_read_state, is_counted, is_derived


def announce(page: Any, request: HttpRequest, response: HttpResponseBase) -> None:
    """Adds a view of the page, and marks it read, if its model has counts and read state.

    Does nothing for a response that is no page, such as a feed, and for a request that did not come
    through the middleware, as of programs that write a static site.
    """
    recorder = getattr(request, "readtrack", None)
    if recorder is None or "html" not in response.get("Content-Type", ""):
        return
    model = type(page)
    if is_counted(model):
        recorder.view(page)
    if has_read_state(model) and not is_derived(model):
        recorder.read(page)
