"""The tags of the page's script, for Django's templates and for Jinja2."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.template import Library
from django.urls import NoReverseMatch, reverse
from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString

from readtrack.page import tags
from readtrack.page.placeholders import PAGE, TEXT, Placeholder
from readtrack.script import honeypot, reading
from readtrack.script.outbound import outbound_url
from readtrack.script.rendering import WITH_NONCE, nonce_of
from readtrack.script.shown import LONGEST_NAME, name_of, version


def add(library: Library) -> None:
    """Adds the tags to those of Django's templates."""
    library.simple_tag(outbound_url)
    library.simple_tag(honeypot.link, name="readtrack_honeypot")
    library.simple_tag(script, takes_context=True, name="readtrack_script")
    library.simple_block_tag(text, takes_context=True, name="readtrack_text")


def jinja_functions() -> dict[str, Any]:
    """Returns the functions for templates of Jinja2."""
    from jinja2 import pass_context

    return {
        "readtrack_honeypot": honeypot.link,
        "readtrack_text": pass_context(readtrack_text),
        "readtrack_script": pass_context(script),
    }


def readtrack_text(context: Any, obj: Any, text_of_obj: str, selector: str = "") -> SafeString:
    """`{{ readtrack_text(post, html) }}` shows the text, marked so that its reading counts."""
    return text(context, conditional_escape(text_of_obj), obj, selector)


def text(context: Any, content: str, obj: Any, selector: str = "") -> SafeString:
    """`{% readtrack_text post %}…{% endreadtrack_text %}` marks the text of the post: the script
    tells who read it.

    Belongs around the text inside of its element, once in a page that has `{% readtrack_script %}`.
    With `selector="article .body"` it may stand around more, and the end of that element is the end
    of the text.
    """
    placeholder = Placeholder.of(TEXT, obj, number_of_words=reading.words(content))
    if placeholder is None:
        return tags.html_of(content, context)
    attribute = format_html(' data-text="{}"', escape(selector)) if selector else ""
    return tags.html_of(f'{content}<span data-read="{placeholder}"{attribute}></span>', context)


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
    request = tags.request_of(context)
    recorder = tags.recorder_of(request)
    if recorder is None:
        return ""
    try:
        url = reverse("readtrack:page")
    except NoReverseMatch:
        hint = "<!-- readtrack_script: include readtrack.urls in the URLconf -->"
        return SafeString(hint if settings.DEBUG else "")
    # The name says what the page shows. Of a DetailView the middleware learns that only later.
    recorder.see(context)
    recorder.is_reported_later = True
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
