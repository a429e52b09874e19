"""The tags for Jinja2: `OPTIONS = {"extensions": ["readtrack.jinja.ReadTrackExtension"]}` of the Jinja2 backend."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.utils.html import conditional_escape
from django.utils.safestring import SafeString
from jinja2 import Environment, nodes, pass_context
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context

from readtrack.page import filling
from readtrack.page.filling import COUNT, DOT, OF_COUNTS, UNREAD, Placeholder
from readtrack.reports import breakdowns


class ReadTrackExtension(Extension):
    """The functions below, and `{% if_unread category %}…{% else %}…{% endif_unread %}`."""

    tags = {"if_unread"}

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.globals.update(
            view_count=view_count,
            read_count=lambda obj: breakdowns.reads(obj) if Placeholder.of(COUNT, obj) else "",
            unread_dot=_placing(DOT),
            unread_count=_placing(UNREAD),
            readtrack_panel=pass_context(lambda context, obj: filling.panel(obj, context)),
            readtrack_text=readtrack_text,
            readtrack_script=pass_context(lambda context: filling.script(context)),
        )

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        obj = parser.parse_expression()
        unread, read = parser.parse_statements(("name:else", "name:endif_unread")), []
        if next(parser.stream).value == "else":
            read = parser.parse_statements(("name:endif_unread",), drop_needle=True)
        branch = nodes.If(nodes.Name("_is_unread", "load"), unread, [], read)
        call = self.call_method("_branches", [nodes.ContextReference(), obj])
        return nodes.CallBlock(call, [nodes.Name("_is_unread", "param")], [], [branch]).set_lineno(line)

    def _branches(self, context: Context, obj: Any, caller: Callable[..., str]) -> SafeString:
        unread, read = partial(caller, _is_unread=True), partial(caller, _is_unread=False)
        return filling.branches(obj, context, unread=unread, read=read)


@pass_context
def view_count(context: Context, obj: Any, form: str = COUNT) -> SafeString:
    """`{{ view_count(post) }}`, with "words" or "exact" behind the post."""
    if form not in OF_COUNTS:
        raise ValueError(f"view_count takes 'words' or 'exact' behind the object, not {form!r}.")
    return filling.left(Placeholder.of(form, obj), context)


def _placing(kind: str) -> Callable[[Context, Any], SafeString]:
    """Returns the function for `{{ unread_dot(category) }}` or `{{ unread_count(category) }}`."""
    return pass_context(lambda context, obj: filling.left(Placeholder.of(kind, obj), context))


@pass_context
def readtrack_text(context: Context, obj: Any, text: str, selector: str = "") -> SafeString:
    """`{{ readtrack_text(post, html) }}`: the text, marked."""
    return filling.text(obj, conditional_escape(text), context, selector=selector)
