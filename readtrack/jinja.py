"""The tags for Jinja2: `OPTIONS = {"extensions": ["readtrack.jinja.ReadTrackExtension"]}` of Django's Jinja2 backend.

`{{ view_count(post) }}`, `{{ unread_dot(category) }}`, `{{ unread_count(category) }}`, and
`{% if_unread category %}…{% else %}…{% endif_unread %}`.
"""

from collections.abc import Callable
from typing import Any

from jinja2 import Environment, nodes, pass_context
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from markupsafe import Markup

from readtrack.page import filling
from readtrack.page.placeholders import COUNT, DOT, ELSE, END, EXACT, IF, UNREAD, WORDS, Placeholder

KINDS = {"": COUNT, EXACT: EXACT, WORDS: WORDS}


class ReadTrackExtension(Extension):
    """Counts and dots, in one round trip for a page."""

    tags = {"if_unread"}

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.globals.update(view_count=view_count, unread_dot=unread_dot, unread_count=unread_count)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        obj = parser.parse_expression()
        unread, read = parser.parse_statements(("name:else", "name:endif_unread")), []
        if next(parser.stream).value == "else":
            read = parser.parse_statements(("name:endif_unread",), drop_needle=True)
        marked = [self._mark(IF, obj), *unread, self._mark(ELSE, obj), *read, self._mark(END, obj)]
        both = nodes.CallBlock(self.call_method("_left", [nodes.ContextReference()]), [], [], marked)
        return nodes.If(self.call_method("_placeholder", [nodes.Const(IF), obj]), [both], [], read).set_lineno(line)

    def _mark(self, kind: str, obj: nodes.Expr) -> nodes.Output:
        return nodes.Output([self.call_method("_placeholder", [nodes.Const(kind), obj])])

    def _placeholder(self, kind: str, obj: Any) -> Markup:
        return Markup(Placeholder.of(kind, obj) or "")  # noqa: S704 - signed, and free of HTML

    def _left(self, context: Context, caller: Callable[[], str]) -> Markup:
        return Markup(filling.left(caller(), context))  # noqa: S704 - rendered


@pass_context
def view_count(context: Context, obj: Any, form: str = "") -> Markup:
    """`{{ view_count(post) }}`, with "words" or "exact" behind the post."""
    if form not in KINDS:
        raise ValueError(f"view_count takes 'words' or 'exact' behind the object, not {form!r}.")
    return _tag(context, KINDS[form], obj)


@pass_context
def unread_dot(context: Context, obj: Any) -> Markup:
    """`{{ unread_dot(category) }}`"""
    return _tag(context, DOT, obj)


@pass_context
def unread_count(context: Context, obj: Any) -> Markup:
    """`{{ unread_count(category) }}`; a dot with READ_STATE "bitmap"."""
    return _tag(context, UNREAD, obj)


def _tag(context: Context, kind: str, obj: Any) -> Markup:
    placeholder = Placeholder.of(kind, obj)
    return Markup(filling.left(str(placeholder), context) if placeholder else "")  # noqa: S704 - signed or rendered
