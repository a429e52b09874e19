"""The tag of the first new post of a thread, for Django's templates and for Jinja2."""

from typing import Any

from readtrack.page import tags
from readtrack.page.stream import outside_coroutine
from readtrack.threads import reports


def first_unread(context: Any, rows: Any, of: Any = None, written: str = "") -> Any:
    """`{% first_unread thread.posts as post %}` sets the first post that is new to the user, else
    None: for a link that jumps there.

    It needs `"read_state": "positions"`. For a queryset, `of=thread` names the thread. The options
    are those of `first_unread` in `readtrack.threads.reports`. Each tag takes a round trip and a
    query.
    """
    user = _user_of(context)
    return outside_coroutine(lambda: reports.first_unread(user, rows, of=of, written=written))


def _user_of(context: Any) -> Any:
    """Returns the user of a template, or None: that of the request, without one the context's."""
    request = tags.request_of(context)
    if request is None:
        return context.get("user")
    return getattr(request, "user", None)
