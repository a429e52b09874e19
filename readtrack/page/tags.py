"""What the tags leave in a page, for Django's templates and for Jinja2."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings
from django.urls import NoReverseMatch, reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from readtrack.conf import explains_pages
from readtrack.hits import readers, reading, visitors
from readtrack.page.filling import filled
from readtrack.page.placeholders import (
    ELSE,
    END,
    IF,
    LANGUAGE,
    OF_COUNTS,
    PAGE,
    TEXT,
    WITH_NONCE,
    Placeholder,
)
from readtrack.page.shown import LONGEST_NAME, name_of, version
from readtrack.page.stream import asked
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
        html = asked(partial(_filled_now, str(content), context))
        return mark_safe(html)  # noqa: S308 - rendered by tags
    recorder.has_placeholders = True
    if isinstance(content, Placeholder):
        if content.kind in OF_COUNTS and explains_pages() and "forloop" not in context:
            recorder.main_subjects.add(content.subject)
        language = _own_language(request)
        if language:
            content = content._replace(language=language)
    return mark_safe(str(content))  # noqa: S308 - signed placeholders, or rendered by tags


def _filled_now(html: str, context: Any) -> str:
    """Returns the HTML with its placeholders filled in for the reader of the context."""
    find_reader = partial(reader_of, context)
    return filled(html.encode(), find_reader).decode()


def recorder_of(request: Any) -> Recorder | None:
    """Returns the recorder of a request whose page the middleware will fill in, else None."""
    recorder: Recorder | None = getattr(request, "readtrack", None)
    return None if recorder is None or recorder.is_closed else recorder


def _own_language(request: Any) -> str:
    """Returns the language of the tag, of a `{% language %}` or an `override` around it; "" if it
    is that of the request.
    """
    language = get_language() or ""
    language_of_request = getattr(request, "LANGUAGE_CODE", None) or settings.LANGUAGE_CODE
    if language == language_of_request:
        return ""
    return language if LANGUAGE.fullmatch(language) else ""


def text(context: Any, content: str, obj: Any, selector: str = "") -> SafeString:
    """`{% readtrack_text post %}…{% endreadtrack_text %}` marks the text of the post: the script
    tells who read it.

    Belongs around the text inside of its element, once in a page that has `{% readtrack_script %}`.
    With `selector="article .body"` it may stand around more, and the end of that element is the end
    of the text.
    """
    placeholder = Placeholder.of(TEXT, obj, number_of_words=reading.words(content))
    if placeholder is None:
        return html_of(content, context)
    attribute = format_html(' data-text="{}"', escape(selector)) if selector else ""
    return html_of(f'{content}<span data-read="{placeholder}"{attribute}></span>', context)


def is_shared(context: Any) -> bool:
    """Returns True for a page that is the same for everybody, and for one that the middleware does
    not fill in.
    """
    recorder = recorder_of(request_of(context))
    return recorder is None or recorder.is_shared


def branches(
    obj: Any, context: Any, *, unread: Callable[[], str], read: Callable[[], str], tag: str = ""
) -> SafeString:
    """Returns both branches of `if_unread` between placeholders.

    `unread` and `read` are functions that render the branches, `tag` is for the log. For an object without read state
    only `read` is rendered.
    """
    start = Placeholder.of(IF, obj, tag=tag)
    if start is None:
        return html_of(read(), context)
    middle = start._replace(kind=ELSE)
    end = start._replace(kind=END)
    return html_of(f"{start}{unread()}{middle}{read()}{end}", context)


def script(context: Any) -> str:
    """`{% readtrack_script %}` counts pages that the server does not see, and keeps counts and dots
    up to date.

    Belongs at the end of `<body>`. Needs `readtrack.urls` in the site's URLconf.
    """
    return script_with(context, 0, SafeString)


def script_with(context: Any, option: int, attributes_of: Callable[[], SafeString]) -> str:
    """Returns the tag of a page's script with the addition that has the option; 0 for none.

    `attributes_of` returns further attributes of the tag.
    """
    request = request_of(context)
    recorder = recorder_of(request)
    if recorder is None:
        return ""
    try:
        url = reverse("readtrack:page")
    except NoReverseMatch:
        hint = "<!-- readtrack_script: include readtrack.urls in the URLconf -->"
        return SafeString(hint if settings.DEBUG else "")
    # The name says what the page shows. Of a DetailView the middleware learns that only later.
    recorder.see(context)
    recorder.has_script = True
    name = name_of(recorder, path=request.path)
    nonce = _nonce_of_page(context, request, is_shared=recorder.is_shared)
    # The middleware fills in this one, because a page out of `cache_page` needs that of its moment.
    is_nonce_of_request = bool(nonce) and nonce == nonce_of(request)
    is_nameable = len(name) <= LONGEST_NAME
    is_nonce_filled_in = is_nonce_of_request and is_nameable
    options = WITH_NONCE * is_nonce_filled_in + option
    version_and_token: Placeholder | SafeString
    if is_nameable:
        # The placeholder gives way to the version of the script and the attribute with the token.
        version_and_token = Placeholder(PAGE, name, options or None)
    else:
        # With an empty token the script sends nothing.
        version_and_token = SafeString(f'{version()}" data-page="')
    attributes = _nonce_attribute("" if is_nonce_filled_in else nonce)
    attributes += attributes_of()
    return format_html('<script src="{}?{}"{} defer></script>', url, version_and_token, attributes)


def _nonce_attribute(nonce: str) -> SafeString:
    """Returns the attribute with the nonce, "" without one."""
    return format_html(' nonce="{}"', nonce) if nonce else SafeString()


def _nonce_of_page(context: Any, request: Any, *, is_shared: bool) -> str:
    """Returns the nonce of Django's context processor or of django-csp; "" without one."""
    if is_shared:  # all copies of the page have to be the same, and a nonce is new each time
        return ""
    nonce = context.get("csp_nonce", getattr(request, "csp_nonce", None))
    return "" if nonce is None else str(nonce)  # None without the middleware of the policy


def nonce_of(request: Any) -> str:
    """Returns the request's nonce by the middleware of django-csp or of Django, "" without one."""
    for name in ("csp_nonce", "_csp_nonce"):
        nonce = getattr(request, name, None)
        if nonce is not None:
            return str(nonce)
    return ""


def reader_of(context: Any) -> readers.Reader | None:
    """Returns the reader of a template: that of the request, or without one the context's user."""
    request = request_of(context)
    if request is None:
        user = context.get("user")
        if user is None or not user.is_authenticated:
            return None
        return readers.or_none(user.pk)
    if hasattr(request, "session"):
        # So that SessionMiddleware adds Vary: Cookie, for anonymous visitors too.
        request.session.accessed = True
    return visitors.reader(request, visitors.signed_in(request))


def user_of(context: Any) -> Any:
    """Returns the user of a template: that of the request, or without one the context's; or None."""
    request = request_of(context)
    return context.get("user") if request is None else getattr(request, "user", None)


def request_of(context: Any) -> Any:
    """Returns the request of a template; None for a template that is rendered without one."""
    return getattr(context, "request", None) or context.get("request")
