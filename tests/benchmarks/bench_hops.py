"""Hops: the functions and files of readtrack that a page and a flush enter, so the code that a
maintainer follows.
"""

import sys
from collections.abc import Callable
from functools import cache
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.template import engines
from django.test import Client, override_settings
from django.urls import path

import readtrack
from readtrack.flush.run import flush
from readtrack.request import TrackedRequest
from readtrack.store.connection import connect
from tests.benchmarks.measuring import table
from tests.site.models import Category, Post
from tests.support.factories import BROWSER

FOLDER = f"{Path(readtrack.__file__).parent}/"
PAGE = "{% load readtrack %}{% view_count post %}{% unread_dot post.category %}"
INLINED = {
    "<genexpr>",
    "<listcomp>",
    "<setcomp>",
    "<dictcomp>",
}  # parts of a function; newer Pythons have fewer


@cache
def _template() -> Any:
    return engines["django"].from_string(PAGE)


def page(request: TrackedRequest, pk: int) -> HttpResponse:
    """A page with one view, one count and one dot."""
    post = Post.objects.select_related("category").get(pk=pk)
    request.readtrack.view(post)
    return HttpResponse(_template().render({"post": post}, request))


urlpatterns = [path("<int:pk>/", page)]


def main() -> None:
    """Prints the figures and functions of a page for a reader, for a visitor, and of a flush of one
    post.
    """
    connect().flushdb()
    post = Post.objects.create(title="Post", category=Category.objects.create(name="Category"))
    works = {
        "page, signed-in reader": page_functions(post, User.objects.create_user("hopping reader")),
        "page, visitor with our cookie": page_functions(post),
        "changed flush of one post": flush_functions(post),
    }
    rows = [(name, str(len(found)), str(len(files(found)))) for name, found in works.items()]
    table("Hops (at most: page 24 files, flush 22)", [("", "functions", "files"), *rows])
    for name, found in works.items():
        print(f"\n{name}", *listed(found), sep="\n  ")


def page_functions(post: Post, user: User | None = None) -> set[CodeType]:
    """Returns the functions that a page with a counted view enters once all caches are warm."""
    client = Client(headers={"User-Agent": BROWSER})
    if user:
        client.force_login(user)
    with override_settings(ROOT_URLCONF=__name__):
        # The first page fills the caches; the fewest of two, because a minute may begin with
        # either.
        return min((_view(client, post) for _ in range(3)), key=len)


def _view(client: Client, post: Post) -> set[CodeType]:
    for key in connect().scan_iter("*viewed:*"):
        connect().delete(key)
    return entered(lambda: client.get(f"/{post.pk}/"))


def flush_functions(post: Post) -> set[CodeType]:
    """Returns the functions that a changed flush enters after one more view of a post that is
    settled.
    """
    page_functions(post)
    flush()
    page_functions(post)
    return entered(lambda: flush(only_changed=True))


def entered(work: Callable[[], object]) -> set[CodeType]:
    """Returns the functions of readtrack that the work enters in this thread."""
    found: set[CodeType] = set()

    def note(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(FOLDER) and code.co_name not in INLINED:
            found.add(code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def files(functions: set[CodeType]) -> set[str]:
    """Returns the files of the functions, relative to the package."""
    return {_file(code) for code in functions}


def listed(functions: set[CodeType]) -> list[str]:
    """Returns a line for each file with the names of its functions, in their order."""
    ordered = sorted(functions, key=lambda code: (_file(code), code.co_firstlineno))
    return [
        f"{name}: {', '.join(code.co_name for code in some)}"
        for name, some in groupby(ordered, key=_file)
    ]


def _file(code: CodeType) -> str:
    return code.co_filename.removeprefix(FOLDER)
