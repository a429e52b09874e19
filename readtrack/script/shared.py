"""Pages that are the same for everybody, so that caches may keep them: their script counts them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest


def shared_page(view: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a view whose page is the same for everybody, so that caches may keep it.

    The page's script then counts the view, and fills in the reader's dots.
    """

    @wraps(view)
    def shared(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        request.readtrack.is_shared = True  # type: ignore[attr-defined]
        return view(request, *args, **kwargs)

    if iscoroutinefunction(view):
        # Django awaits what the view returns, and asks the function whether to do so.
        return markcoroutinefunction(shared)
    return shared
