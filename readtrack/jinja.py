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

from readtrack.page import filling, placeholders
from readtrack.page.placeholders import COUNT, DOT, ELSE, END, EXACT, IF, NEWS, WORDS, Placeholder

KINDS = {"": COUNT, EXACT: EXACT, WORDS: WORDS}


class ReadTrackExtension(Extension):
    """Counts and dots, as many as one likes for one round trip."""

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
        return nodes.If(self.call_method("_is_shown", [obj]), [both], [], read).set_lineno(line)

    def _mark(self, kind: str, obj: nodes.Expr) -> nodes.Output:
        return nodes.Output([self.call_method("_marked", [nodes.Const(kind), obj])])

    def _marked(self, kind: str, obj: Any) -> Markup:
        return Markup(Placeholder.of(kind, obj))  # noqa: S704 - signed, and free of HTML

    def _is_shown(self, obj: Any) -> bool:
        return placeholders.is_shown(IF, obj)

    def _left(self, context: Context, caller: Callable[[], str]) -> Markup:
        return _left(caller(), context)


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
    """`{{ unread_count(category) }}`; a dot where only bits are kept."""
    return _tag(context, NEWS, obj)


def _tag(context: Context, kind: str, obj: Any) -> Markup:
    return _left(str(Placeholder.of(kind, obj)), context) if placeholders.is_shown(kind, obj) else Markup()


def _left(content: str, context: Context) -> Markup:
    return Markup(filling.left(content, context.get("request"), context.get("user")))  # noqa: S704 - rendered
