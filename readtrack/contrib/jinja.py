"""The tags for Jinja2: `OPTIONS = {"extensions": ["readtrack.contrib.jinja.ReadTrackExtension"]}`
of the Jinja2 backend.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.utils.safestring import SafeString
from jinja2 import Environment, TemplateRuntimeError, nodes, pass_context
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context

from readtrack import parts, shipped
from readtrack.page import tags
from readtrack.page.placeholders import COUNT, DOT, EXACT, UNREAD, WORDS, Placeholder


class ReadTrackExtension(Extension):
    """The functions below, and `{% if_unread category %}…{% else %}…{% endif_unread %}`."""

    tags = {"if_unread"}

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.globals.update(
            view_count=_placing(COUNT, WORDS, EXACT),
            unread_dot=_placing(DOT),
            unread_count=_placing(UNREAD),
        )
        for part in parts.installed():
            environment.globals.update(part.jinja_functions())
        for name, part_name in parts.absent_tags().items():
            environment.globals.setdefault(name, _stand_in(name, part_name))

    def parse(self, parser: Parser) -> nodes.Node:
        """Returns the node of `if_unread`: a call of `_branches` with the branches as its block.

        The block has a parameter, so that `_branches` can render either branch.
        """
        line_number = next(parser.stream).lineno
        obj = parser.parse_expression()
        unread = parser.parse_statements(("name:else", "name:endif_unread"))
        read = []
        if next(parser.stream).value == "else":
            read = parser.parse_statements(("name:endif_unread",), drop_needle=True)
        branches = nodes.If(nodes.Name("_is_unread", "load"), unread, [], read)
        call = self.call_method("_branches", [nodes.ContextReference(), obj])
        block = nodes.CallBlock(call, [nodes.Name("_is_unread", "param")], [], [branches])
        return block.set_lineno(line_number)

    def _branches(self, context: Context, obj: Any, caller: Callable[..., str]) -> SafeString:
        """Returns both branches. `caller` renders the block of the tag."""
        unread = partial(caller, _is_unread=True)
        read = partial(caller, _is_unread=False)
        return tags.branches(obj, context, unread=unread, read=read)


def _placing(*options: str) -> Callable[..., SafeString]:
    """Returns the function that leaves an object's placeholder, such as `unread_dot(category)`.

    `options` are kinds of placeholders. The first one is the default; another one can be given
    behind the object, as in `view_count(post, "words")`.
    """
    default, *other_options = options

    @pass_context
    def place(context: Context, obj: Any, option: str = default) -> SafeString:
        if option not in options:
            allowed = " or ".join(map(repr, other_options)) or "nothing"
            raise ValueError(f"This takes {allowed} behind the object, not {option!r}.")
        return tags.html_of(Placeholder.of(option, obj), context)

    return place


def _stand_in(name: str, part_name: str) -> Callable[..., SafeString]:
    """Returns what stands for a function whose part is not installed."""

    def refuse(*args: Any, **kwargs: Any) -> SafeString:
        raise TemplateRuntimeError(shipped.missing(f"{name}()", part_name))

    return refuse
