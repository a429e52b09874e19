"""What the tags leave in a page, for Django's templates and for Jinja2."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from readtrack.conf import explains_pages
from readtrack.hits import readers, visitors
from readtrack.page.filling import filled
from readtrack.page.placeholders import ELSE, END, IF, LANGUAGE, OF_COUNTS, Placeholder
from readtrack.page.stream import outside_coroutine
from readtrack.request import Recorder


def html_of(content: Placeholder | str | None, context: Any) -> SafeString:
    """Returns the HTML that a tag leaves in the page, with its placeholders.

    They are filled in at once unless the middleware will do it later.
    """
    if not content:
        return SafeString()
    request = request_of(context)
    recorder = recorder_of(request)
    if recorder is None:
        html = outside_coroutine(partial(_filled_now, str(content), context))
        return SafeString(html)  # which tags have escaped
    recorder.has_placeholders = True
    if isinstance(content, Placeholder):
        if content.kind in OF_COUNTS and explains_pages() and "forloop" not in context:
            recorder.main_subjects.add(content.subject)
        language = _own_language(request, recorder)
        if language:
            content = content._replace(language=language)
    # Signed, or escaped by tags. `mark_safe` takes as long as the placeholder itself.
    return SafeString(str(content))


def _filled_now(html: str, context: Any) -> str:
    """Returns the HTML with its placeholders filled in for the reader of the context, at once,
    because no middleware will do it. Asks Redis.
    """
    find_reader = partial(reader_of, context)
    return filled(html.encode(), find_reader).decode()


def recorder_of(request: Any) -> Recorder | None:
    """Returns the recorder of a request whose page the middleware will fill in, else None."""
    recorder: Recorder | None = getattr(request, "readtrack", None)
    if recorder is None or recorder.is_closed:
        return None
    return recorder


def _own_language(request: Any, recorder: Recorder) -> str:
    """Returns the language of the tag, of a `{% language %}` or an `override` around it; "" if it
    is that of the request.
    """
    if not recorder.language:  # asked once in a page, and not by each of its tags
        recorder.language = getattr(request, "LANGUAGE_CODE", None) or settings.LANGUAGE_CODE
    language = get_language() or ""
    if language == recorder.language or not LANGUAGE.fullmatch(language):
        return ""
    return language


def branches(
    obj: Any, context: Any, *, unread: Callable[[], str], read: Callable[[], str], tag: str = ""
) -> SafeString:
    """Returns both branches of `if_unread` between placeholders.

    `unread` and `read` are functions that render the branches, `tag` is for the log. For an object
    without read state only `read` is rendered.
    """
    start = Placeholder.of(IF, obj, tag=tag)
    if start is None:
        return html_of(read(), context)
    middle = start._replace(kind=ELSE)
    end = start._replace(kind=END)
    return html_of(f"{start}{unread()}{middle}{read()}{end}", context)


def reader_of(context: Any) -> readers.Reader | None:
    """Returns the reader of a template: that of the request, or without one the context's user."""
    request = request_of(context)
    if request is None:
        user = context.get("user")
        if user is None or not user.is_authenticated:
            return None
        return readers.reader_or_none(user.pk)
    if hasattr(request, "session"):
        # So that SessionMiddleware adds Vary: Cookie, for anonymous visitors too.
        request.session.accessed = True
    return visitors.reader(request, visitors.signed_in(request))


def request_of(context: Any) -> Any:
    """Returns the request of a template; None for a template that is rendered without one."""
    return getattr(context, "request", None) or context.get("request")
