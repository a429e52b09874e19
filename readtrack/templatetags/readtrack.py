"""`{% load readtrack %}`: counts and dots. A tag never writes, and a page asks Redis once however many it has."""

from collections.abc import Sequence
from typing import Any

from django import template
from django.conf import settings
from django.db.models import Model
from django.template.base import FilterExpression, Parser, Token
from django.template.context import Context
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from readtrack import outbound, placeholders, reports, subjects, visitors
from readtrack.placeholders import COUNT, DOT, EXACT, WORDS, Placeholder

HONEYPOT_HINT = SafeString("<!-- readtrack_honeypot: include readtrack.urls in the URLconf -->")

register = template.Library()


@register.tag
def view_count(parser: Parser, token: Token) -> template.Node:
    """`{% view_count post %}`, with `words` or `exact` behind it, `{% view_count post as views %}`."""
    obj, options, target = _words(parser, token, options=[EXACT, WORDS])
    return CountNode(obj, kind=options[0] if options else COUNT, target=target)


@register.tag
def unread_dot(parser: Parser, token: Token) -> template.Node:
    """`{% unread_dot category %}`, `{% unread_dot category as is_unread %}`."""
    obj, _, target = _words(parser, token)
    return DotNode(obj, kind=DOT, target=target)


@register.simple_tag
def outbound_url(obj: Model, url: str, stage: str = "click") -> str:
    """`{% outbound_url post "https://example.com/" stage="click" %}`: counts the stage and leads there."""
    return outbound.link(obj, url, stage=stage) if isinstance(obj, Model) and obj.pk is not None else str(url)


class PlaceholderNode(template.Node):
    """Leaves a placeholder; under a name, or outside a request, the value at once."""

    def __init__(self, obj: FilterExpression, *, kind: str, target: str | None) -> None:
        self.obj, self.kind, self.target = obj, kind, target

    def render(self, context: Context) -> str:
        obj = self.obj.resolve(context)
        if not isinstance(obj, Model) or obj.pk is None:
            return ""  # as Django does with a variable that is not there
        if self.target is not None:
            context[self.target] = self.value(obj, context)
            return ""
        if not hasattr(_request(context), "readtrack"):
            return self.html(obj, context)
        # What SQL stores rides along, if it was loaded: with Redis gone it is shown without a query.
        return str(Placeholder(self.kind, subjects.token(obj), obj.__dict__.get("view_count", 0)))

    def value(self, obj: Any, context: Context) -> int | bool:
        raise NotImplementedError

    def html(self, obj: Any, context: Context) -> str:
        raise NotImplementedError


class CountNode(PlaceholderNode):
    """`{% view_count %}`"""

    def value(self, obj: Any, context: Context) -> int:
        return reports.views([obj])[obj]

    def html(self, obj: Any, context: Context) -> str:
        return placeholders.count(self.value(obj, context), kind=self.kind)


class DotNode(PlaceholderNode):
    """`{% unread_dot %}`"""

    def value(self, obj: Any, context: Context) -> bool:
        request = _request(context)
        user = visitors.signed_in(request) if request else context.get("user")
        return bool(user and reports.unread(user, [obj]))

    def html(self, obj: Any, context: Context) -> str:
        return placeholders.dot(is_unread=self.value(obj, context))


@register.simple_tag
def readtrack_honeypot() -> str:
    """`{% readtrack_honeypot %}`: a link that only robots follow. Needs `readtrack.urls` in the site's URLconf."""
    try:
        url = reverse("readtrack:honeypot")
    except NoReverseMatch:
        return HONEYPOT_HINT if settings.DEBUG else ""
    # Without text it takes no room, so it needs no style, which a policy may forbid and robots look for.
    return format_html('<a href="{}" rel="nofollow" aria-hidden="true" tabindex="-1"></a>', url)


def _request(context: Context) -> Any:
    return getattr(context, "request", None) or context.get("request")


def _words(
    parser: Parser, token: Token, *, options: Sequence[str] = ()
) -> tuple[FilterExpression, list[str], str | None]:
    """The tag's object, its options and the name after `as`."""
    name, *words = token.split_contents()
    target = None
    if len(words) > 2 and words[-2] == "as":
        *words, _, target = words
    if not words or any(word not in options for word in words[1:]):
        usage = "".join(f" [{option}]" for option in options)
        raise template.TemplateSyntaxError(f"Usage: {{% {name} object{usage} [as name] %}}")
    return parser.compile_filter(words[0]), words[1:], target
