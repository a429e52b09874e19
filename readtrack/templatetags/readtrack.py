"""`{% load readtrack %}`: tags for counts and dots.

A tag never writes. All placeholders of a page are filled in by one round trip to Redis.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from django import template
from django.apps import apps
from django.template.base import Parser, Token

from readtrack import numerals, parts, reports, shipped
from readtrack.page import tags
from readtrack.page.placeholders import COUNT, DOT, EXACT, IF, OF_COUNTS, UNREAD, WORDS, Placeholder
from readtrack.page.rendering import in_words
from readtrack.page.stream import outside_coroutine
from readtrack.reports.page_state import page_state

register = template.Library()


@register.tag
def view_count(parser: Parser, token: Token) -> template.Node:
    """`{% view_count post %}` shows the live views, such as `1.2k`, with the exact number as a
    title.

    With `words` it shows `1.2k views`, with `exact` the text `1,234`. `{% view_count post as views
    %}` sets a number, `{% view_count post words as text %}` a text.
    """
    return PlaceholderNode(parser, token, COUNT, EXACT, WORDS)


@register.tag
def unread_dot(parser: Parser, token: Token) -> template.Node:
    """`{% unread_dot category %}` shows a dot while the category has something new to the user,
    else nothing.

    `{% unread_dot category as is_unread %}` sets True or False.
    """
    return PlaceholderNode(parser, token, DOT)


@register.tag
def unread_count(parser: Parser, token: Token) -> template.Node:
    """`{% unread_count category %}` shows how many items are new, or a dot with the form
    "bitmap" of read state.

    `{% unread_count category as items %}` sets the number, 0 or 1 with a bitmap.
    """
    return PlaceholderNode(parser, token, UNREAD)


@register.tag
def if_unread(parser: Parser, token: Token) -> template.Node:
    """`{% if_unread category %}…{% else %}…{% endif_unread %}` shows the first part while the
    category has something new to the user, else the second. Both are rendered.
    """
    node = PlaceholderNode(parser, token, IF)
    if node.target:
        raise template.TemplateSyntaxError(
            "if_unread sets no name; {% unread_dot object as name %} does."
        )
    node.unread = parser.parse(("else", "endif_unread"))
    if parser.next_token().contents == "else":
        node.read = parser.parse(("endif_unread",))
        parser.delete_first_token()
    return node


@register.simple_tag
def most_viewed(of: Any, limit: int = 10) -> Any:
    """`{% most_viewed "blog.Post" limit=5 as posts %}` sets the posts with the most views of all
    time. A queryset may stand in place of the model's name.
    """
    if isinstance(of, str):
        of = apps.get_model(of)
    return outside_coroutine(partial(reports.most_viewed, of, limit))


@register.simple_tag
def trending(limit: int = 10, of: str = "") -> list[reports.Trend]:
    """`{% trending limit=5 as trends %}` sets the objects of the last hour: `{{ trend.obj }}`, `{{
    trend.views }}`.

    `of="blog.Post"` makes it a single model.
    """
    model = None
    if of:
        model = apps.get_model(of)
    return outside_coroutine(partial(reports.trending, limit, model=model))


@register.simple_tag
def visitor_count(obj: Any) -> int | str:
    """`{% visitor_count post %}` shows the unique visitors. Each tag takes a round trip."""
    if not Placeholder.of(COUNT, obj):  # has no counts; with DEBUG that is logged
        return ""
    return outside_coroutine(lambda: reports.visitors([obj])[obj])


class PlaceholderNode(template.Node):
    """Leaves a placeholder in the page, or with `as name` sets the name to the value.

    `if_unread` leaves placeholders around its two branches.
    """

    child_nodelists = ("unread", "read")
    # The branches of `if_unread`.
    unread = template.NodeList()
    read = template.NodeList()

    def __init__(self, parser: Parser, token: Token, placeholder_kind: str, *options: str) -> None:
        """Reads the arguments of the tag: the object, an option, and `as name`.

        The options are kinds of placeholders, too. One of them replaces `placeholder_kind`. Raises
        TemplateSyntaxError for other arguments.
        """
        tag, *arguments = token.split_contents()
        self.tag = f"{{% {token.contents} %}} in {parser.origin}, line {token.lineno},"
        self.target = None  # the name behind `as`
        if len(arguments) > 2 and arguments[-2] == "as":
            self.target = arguments[-1]
            arguments = arguments[:-2]
        if not arguments or len(arguments) > 2 or not set(arguments[1:]) <= set(options):
            usage = f"{tag} object"
            if options:
                usage += f" [{' or '.join(options)}]"
            raise template.TemplateSyntaxError(f"Usage: {{% {usage} [as name] %}}")
        self.obj = parser.compile_filter(arguments[0])
        self.placeholder_kind = placeholder_kind
        if len(arguments) == 2:
            self.placeholder_kind = arguments[1]

    def render(self, context: template.Context) -> str:
        """Returns the placeholder, or both branches of `if_unread`; "" with `as name`."""
        obj = self.obj.resolve(context)
        if self.placeholder_kind == IF:
            unread = partial(self.unread.render, context)
            read = partial(self.read.render, context)
            return tags.branches(obj, context, unread=unread, read=read, tag=self.tag)
        placeholder = Placeholder.of(self.placeholder_kind, obj, tag=self.tag)
        if self.target is None:
            return tags.html_of(placeholder, context)
        context[self.target] = outside_coroutine(lambda: self._value(placeholder, obj, context))
        return ""

    def _value(self, placeholder: Placeholder | None, obj: Any, context: template.Context) -> Any:
        """Returns the value for `as name`; "" for an object without counts or read state."""
        if not placeholder:
            return ""
        if self.placeholder_kind in OF_COUNTS:
            return self._text_or_number(reports.views([obj])[obj])
        state = page_state(dots=[placeholder.subject], reader=tags.reader_of(context))
        items = state.unread.get(placeholder.subject, 0)
        if self.placeholder_kind == DOT:
            return items > 0
        return items

    def _text_or_number(self, views: int) -> int | str:
        """Returns the views as the option asks: text with `exact` or `words`, else the number."""
        if self.placeholder_kind == EXACT:
            return numerals.exact(views)
        if self.placeholder_kind == WORDS:
            return in_words(views)
        return views


def _stand_in(tag: str, part_name: str) -> Callable[[Parser, Token], template.Node]:
    """Returns what stands for a tag whose part is not installed."""

    def refuse(parser: Parser, token: Token) -> template.Node:
        raise template.TemplateSyntaxError(shipped.missing(f"{{% {tag} %}}", part_name))

    return refuse


for _part in parts.installed():
    _part.add_tags(register)
for _tag, _part_name in parts.absent_tags().items():
    register.tags.setdefault(_tag, _stand_in(_tag, _part_name))
