"""`{% load readtrack %}`: counts and dots. A tag never writes, and a page asks Redis once however many it has."""

from collections.abc import Callable, Sequence
from typing import Any

from django import template
from django.conf import settings
from django.db.models import Model
from django.template.base import FilterExpression, Parser, Token
from django.template.context import Context
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from readtrack import reports
from readtrack.page import filling, markup, placeholders
from readtrack.page.placeholders import COUNT, DOT, EXACT, IF, NEWS, WORDS, Placeholder
from readtrack.reports import live
from readtrack.subjects import subject_of
from readtrack.views import outbound

HONEYPOT_HINT = SafeString("<!-- readtrack_honeypot: include readtrack.urls in the URLconf -->")

register = template.Library()


@register.tag
def view_count(parser: Parser, token: Token) -> template.Node:
    """`{% view_count post %}`, with `words` or `exact` behind it; `{% view_count post as views %}` is the number,
    `{% view_count post words as text %}` its text."""
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
    if isinstance(obj, Model) and obj.pk is not None:
        return outbound.link(obj, url, stage=stage)
    return str(url) if outbound.is_web(str(url)) else ""


@register.tag
def unread_count(parser: Parser, token: Token) -> template.Node:
    """`{% unread_count category %}`, `{% unread_count category as items %}`; a dot where only bits are kept."""
    obj, _, target = _words(parser, token)
    return UnreadCountNode(obj, kind=NEWS, target=target)


@register.tag
def if_unread(parser: Parser, token: Token) -> template.Node:
    """`{% if_unread category %}…{% else %}…{% endif_unread %}`; both are rendered, one is sent."""
    obj, _, target = _words(parser, token)
    if target:
        raise template.TemplateSyntaxError(
            "if_unread gives no name a value; unread_dot does: {% unread_dot object as name %}"
        )
    unread, read = parser.parse(("else", "endif_unread")), template.NodeList()
    if parser.next_token().contents == "else":
        read = parser.parse(("endif_unread",))
        parser.delete_first_token()
    return IfUnreadNode(obj, unread, read)


class PlaceholderNode(template.Node):
    """Leaves a placeholder; under a name, or outside a request, the value at once."""

    value: Callable[[Any, Context], int | str]

    def __init__(self, obj: FilterExpression, *, kind: str, target: str | None) -> None:
        self.obj, self.kind, self.target = obj, kind, target

    def render(self, context: Context) -> str:
        obj = self.obj.resolve(context)
        is_shown = placeholders.is_shown(self.kind, obj)
        if self.target is not None:
            context[self.target] = self.value(obj, context) if is_shown else ""
        if self.target is not None or not is_shown:
            return ""  # as Django does with a variable that is not there
        return _left(str(Placeholder.of(self.kind, obj)), context)


class CountNode(PlaceholderNode):
    """`{% view_count %}`"""

    def value(self, obj: Any, context: Context) -> int | str:
        views: int = reports.views([obj])[obj]
        return views if self.kind == COUNT else markup.text(views, kind=self.kind)


class UnreadCountNode(PlaceholderNode):
    """`{% unread_count %}`"""

    def value(self, obj: Any, context: Context) -> int:
        subject = subject_of(obj)
        reader = filling.finder(_request(context), context.get("user"))()
        return live.page_state(dots=[subject], reader=reader).unread.get(subject, 0)


class DotNode(UnreadCountNode):
    """`{% unread_dot %}`"""

    def value(self, obj: Any, context: Context) -> bool:
        return bool(super().value(obj, context))


class IfUnreadNode(template.Node):
    """`{% if_unread %}`"""

    child_nodelists = ("unread", "read")

    def __init__(self, obj: FilterExpression, unread: template.NodeList, read: template.NodeList) -> None:
        self.obj, self.unread, self.read = obj, unread, read

    def render(self, context: Context) -> str:
        obj = self.obj.resolve(context)
        if not placeholders.is_shown(IF, obj):
            return self.read.render(context)
        unread, read = self.unread.render(context), self.read.render(context)
        return _left(placeholders.branches(obj, unread, read), context)


def _left(content: str, context: Context) -> str:
    return mark_safe(filling.left(content, _request(context), context.get("user")))  # noqa: S308 - tags made it


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
    if not words or len(words) > 2 or any(word not in options for word in words[1:]):
        usage = f" [{' or '.join(options)}]" if options else ""
        raise template.TemplateSyntaxError(f"Usage: {{% {name} object{usage} [as name] %}}")
    return parser.compile_filter(words[0]), words[1:], target
