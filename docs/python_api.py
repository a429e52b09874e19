"""The Python API as Markdown, read out of the source.

Signatures are those of the source, not of the objects, because each Python shows the types of an
object in another way. The directives are Sphinx's, so that other pages can link to them, and can be
read as they are.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from asgiref.sync import SyncToAsync

Function = ast.FunctionDef | ast.AsyncFunctionDef
OUTER = "````"  # the fence of a class, around those of its members
INNER = "```"


def section(module: Any, entries: Iterable[str]) -> str:
    """Returns a directive for each entry, such as `publish`, or `Recorder: view, read` for a class
    with those of its members. Functions for the event loop are only named.
    """
    blocks = []
    asynchronous = []
    for entry in entries:
        name, _, members = entry.partition(": ")
        member = getattr(module, name)
        if isinstance(member, SyncToAsync):
            continue
        if hasattr(module, f"a{name}"):
            asynchronous.append(f"`a{name}`")
        if isinstance(member, type):
            blocks.append(_class(module, member, names=members.split(", ") if members else []))
        else:
            blocks.append(_function(module, name, inspect.unwrap(member)))
    if asynchronous:
        blocks.append(f"For the event loop: {', '.join(asynchronous)}.")
    return "\n\n".join(blocks)


def signature(function: Any) -> str:
    """Returns the arguments and the result of a function, such as `(obj: Model) -> None`."""
    return _signature(_parsed(function))


def _function(module: Any, name: str, function: Any) -> str:
    signature = _signature(_parsed(function))
    options = [f":module: {module.__name__}"]
    return _directive("py:function", f"{name}{signature}", options, inspect.getdoc(function))


def _class(module: Any, member: type, *, names: list[str]) -> str:
    kind = "py:exception" if issubclass(member, Exception) else "py:class"
    tree = _parsed(member)
    blocks = [_member(member, tree, name) for name in names]
    return _directive(
        kind,
        f"{member.__name__}{_arguments(member)}",
        [f":module: {module.__name__}"],
        "\n\n".join([inspect.getdoc(member) or "", *blocks]),
        fence=OUTER if blocks else INNER,
    )


def _arguments(member: type) -> str:
    """Returns the arguments with which the class is called, as far as readtrack names them."""
    if issubclass(member, tuple) or hasattr(member, "__dataclass_fields__"):
        return f"({', '.join(map(_field, _fields(member)))})"
    for ancestor in member.__mro__:
        if "__init__" in vars(ancestor) and ancestor.__module__.startswith("readtrack."):
            return _signature(_parsed(vars(ancestor)["__init__"]), is_method=True)
    return ""


def _fields(member: type) -> Iterator[ast.AnnAssign]:
    """Yields the fields of the class, those of its bases first."""
    for ancestor in reversed(member.__mro__):
        if ancestor.__module__.startswith("readtrack."):
            yield from _attributes(_parsed(ancestor))


def _field(node: ast.AnnAssign) -> str:
    default = f" = {ast.unparse(node.value)}" if node.value else ""
    return f"{ast.unparse(node.target)}: {_type(node.annotation)}{default}"


def _member(owner: type, tree: ast.ClassDef, name: str) -> str:
    """Returns the directive of a method, a property or an attribute of the class."""
    member = vars(owner)[name]
    if isinstance(member, property):
        function = _parsed(member.fget)
        options = [f":type: {_quoted(function.returns)}"]
        return _directive("py:property", name, options, inspect.getdoc(member))
    if inspect.isfunction(member):
        signature = _signature(_parsed(member), is_method=True)
        return _directive("py:method", f"{name}{signature}", [], inspect.getdoc(member))
    [node] = [node for node in _attributes(tree) if ast.unparse(node.target) == name]
    options = [f":type: {_quoted(node.annotation)}"]
    if node.value:
        options.append(f":value: {_quoted(node.value)}")
    return _directive("py:attribute", name, options, _comment(owner, node))


def _attributes(tree: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            yield node


def _comment(owner: type, node: ast.AnnAssign) -> str:
    """Returns the comment `#: …` above an attribute."""
    lines = inspect.getsource(owner).splitlines()[: node.lineno - 1]
    comment: list[str] = []
    while lines and lines[-1].strip().startswith("#: "):
        comment.insert(0, lines.pop().strip().removeprefix("#: "))
    return "\n".join(comment)


def _quoted(node: ast.expr | None) -> str:
    """Returns an expression as the option of a directive, whose value is YAML."""
    return json.dumps(ast.unparse(node) if node else "None")


def _parsed(member: Any) -> Any:
    """Returns the definition of a function or class in the source."""
    return ast.parse(textwrap.dedent(inspect.getsource(member))).body[0]


def _signature(function: Function, *, is_method: bool = False) -> str:
    """Returns arguments and result, such as `(obj: Model) -> None`."""
    arguments = function.args
    if is_method:
        del arguments.args[0]  # self
    returns = _type(function.returns) if function.returns else "None"
    result = "" if function.name == "__init__" else f" -> {returns}"
    return f"({', '.join(_argument_list(arguments))}){result}"


def _argument_list(arguments: ast.arguments) -> Iterator[str]:
    """Yields each argument as the source has it; `ast.unparse` writes no blanks around `=`."""
    without_default = len(arguments.args) - len(arguments.defaults)
    defaults = [*[None] * without_default, *arguments.defaults]
    for argument, default in zip(arguments.args, defaults, strict=True):
        yield _argument(argument, default)
    if arguments.vararg:
        yield f"*{_argument(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default)
    if arguments.kwarg:
        yield f"**{_argument(arguments.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None = None) -> str:
    annotation = f": {_type(argument.annotation)}" if argument.annotation else ""
    value = f" = {ast.unparse(default)}" if default else ""
    return f"{argument.arg}{annotation}{value}"


def _type(annotation: ast.expr) -> str:
    """Returns an annotation; one that stands in quotes because its names come later, without."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    return ast.unparse(annotation)


def _directive(
    kind: str, argument: str, options: list[str], content: str | None, *, fence: str = INNER
) -> str:
    return "\n".join([f"{fence}{{{kind}}} {argument}", *options, "", content or "", fence])
