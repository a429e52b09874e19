"""The tag of the first new post of a thread, for Django's templates and for Jinja2."""

from typing import Any

from readtrack.page import tags
from readtrack.page.stream import asked
from readtrack.threads import reports


def first_unread(context: Any, rows: Any, of: Any = None, written: str = "") -> Any:
    """`{% first_unread thread.posts as post %}` sets the first post that is new to the user, else
    None: for a link that jumps there.

    It needs `"read_state": "positions"`. For a queryset, `of=thread` names the thread. The options
    are those of `first_unread` in `readtrack.threads.reports`. Each tag takes a round trip and a
    query.
    """
    user = tags.user_of(context)
    return asked(lambda: reports.first_unread(user, rows, of=of, written=written))
