"""The parts of the reference pages that are read out of the code, as Markdown. `manage.py docs`
writes them into the pages. They are the same on each Python and Django.
"""

import ast
import inspect
import re
import textwrap
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import readtrack
from docs.python_api import section
from readtrack import (
    admin,
    conf,
    models,
    operations,
    parts,
    reports,
    request,
    testing,
    tracker,
)
from readtrack.audience import reports as audience_reports
from readtrack.contrib import health_check, rest_framework
from readtrack.hits import visitors
from readtrack.live import asgi
from readtrack.management.commands.readtrack import Command
from readtrack.numbers import model_options as numbers_model_options
from readtrack.numbers import notes
from readtrack.numbers import operations as numbers_operations
from readtrack.numbers import reports as numbers_reports
from readtrack.recent import reports as recent_reports
from readtrack.schedule import intervals
from readtrack.script import asgi as script_asgi
from readtrack.script import shared, shown
from readtrack.script import wsgi as script_wsgi
from readtrack.store import keys
from readtrack.templatetags.readtrack import register
from readtrack.threads import reports as threads_reports

# The Python API, by its place: of each class the members that a site uses.
API: dict[str, tuple[Any, Iterable[str]]] = {
    "request": (request, ["Recorder: view, read, step"]),
    "shared": (shared, ["shared_page"]),
    "tokens": (shown, ["page_token"]),
    "tracker": (
        tracker,
        [
            *(
                "publish",
                "publish_to",
                "unpublish",
                "unpublish_from",
                "mark_unread",
                "mark_read",
                "mark_all_read",
            ),
            *(
                "view",
                "visitor",
                "step",
                "rename",
                "reset_views",
                "refresh_trending",
                "resend",
                "erase",
            ),
        ],
    ),
    "notes": (notes, ["note"]),
    "reports": (reports, reports.__all__),
    "numbers": (numbers_reports, numbers_reports.__all__),
    "numbers_of_model": (
        numbers_model_options,
        ["NumbersOfModel: has_funnel, published_field, publication_notes"],
    ),
    "models": (
        models,
        [
            "Tracked: unique_strategy, news_for, news_fields, news_author, is_news",
            "TrackedQuerySet: most_viewed",
            "FlushRun: took",
        ],
    ),
    "admin": (admin, ["TrackedAdmin"]),
    "operations": (operations, ["SetFillfactor", "FollowRename"]),
    "history": (numbers_operations, ["PartitionHistory"]),
    "live": (asgi, ["with_events"]),
    "script_wsgi": (script_wsgi, ["with_reports"]),
    "script_asgi": (script_asgi, ["with_reports"]),
    "audience": (audience_reports, audience_reports.__all__),
    "recent": (recent_reports, ["recently_viewed"]),
    "threads": (threads_reports, threads_reports.__all__),
    "testing": (testing, ["clear"]),
    "rest_framework": (
        rest_framework,
        ["CountViewsMixin", "ViewCountField", "UnreadCountField", "UnreadField"],
    ),
    "health_check": (health_check, ["ReadTrack"]),
    "visitors": (visitors, ["visitor", "signed_in", "Visitor"]),
}


def settings() -> str:
    """Every setting with its type, default and meaning, under the headings of conf.py."""
    lines = []
    for line in _documented_lines(conf.Conf):
        if heading := re.fullmatch(r"    # (.+)", line):
            lines += [f"## {heading[1]}", ""]
        elif setting := re.fullmatch(r"    ([A-Z_]+): (.+?) = .*?  # (.+)", line):
            name, kind, meaning = setting.groups()
            keys_of_setting = conf.key_class(name)
            if keys_of_setting:
                lines += _dict_of_keys(name, meaning, keys_of_setting)
            else:
                lines += _setting(name, kind, repr(conf.DEFAULTS[name]), meaning)
    for part in parts.installed():
        if part.setting:
            lines += [f"## {part.name}", ""]
            lines += _dict_of_keys(part.setting, part.setting_about, part.setting_keys())
    return "\n".join(lines)


def _documented_lines(settings_class: type[Any]) -> list[str]:
    """The lines of the class, each setting with its comment behind it: also the comment `#: …`
    that stands above the setting in one or several lines.
    """
    lines: list[str] = []
    comment = ""
    for line in inspect.getsource(settings_class).splitlines():
        if part_of_comment := re.fullmatch(r"    #: (.+)", line):
            comment += f" {part_of_comment[1]}"
        elif comment:
            lines.append(f"{line}  #{comment}")
            comment = ""
        else:
            lines.append(line)
    return lines


def _dict_of_keys(name: str, meaning: str, keys_of_setting: type[Any] | None) -> list[str]:
    """The setting, which is a dict, followed by each of its keys."""
    lines = _setting(name, "Mapping[str, Any]", "{}", meaning)
    if keys_of_setting is None:
        return lines
    for line in _documented_lines(keys_of_setting):
        if key := re.fullmatch(r"    ([a-z_]+): (.+?) = (.+?)  # (.+)", line):
            key_name, kind, default, meaning_of_key = key.groups()
            lines += _setting(f"{name}.{key_name}", kind, default, meaning_of_key)
    return lines


def _setting(name: str, kind: str, default: str, meaning: str) -> list[str]:
    """One setting, or a key of one."""
    return [
        f"```{{confval}} {name}",
        f":type: {_code(kind)}",
        f":default: {_code(default)}",
        "",
        f"{meaning[0].upper()}{meaning[1:].removesuffix('.')}.",
        "```",
        "",
    ]


def _code(text: str) -> str:
    """The text as code in an option of a directive, whose value is YAML."""
    return "'`{}`'".format(text.replace("'", "''"))


def key_table() -> str:
    """Every key in Redis."""
    rows = ((f"`{key.pattern}`", key.type, _lifetime(key.ttl), key.why) for key in keys.every())
    return _table(("key", "type", "lifetime", "why"), rows)


def _lifetime(ttl: int | str) -> str:
    """`2 days` for a number of seconds; the setting that decides."""
    if isinstance(ttl, str):
        return f"`{ttl}`"
    length, unit = next(
        (
            unit
            for unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"))
            if ttl and ttl % unit[0] == 0
        ),
        (1, "second"),
    )
    return f"{ttl // length} {unit}{'s' * (ttl > length)}" if ttl else "none"


def tags() -> str:
    """Every template tag, by its docstring."""
    return _sections((name, inspect.getdoc(tag) or "") for name, tag in register.tags.items())


def commands() -> str:
    """Every subcommand: its arguments, what it does, and what each argument means.

    argparse's own `--help` differs between Pythons and with the width of the terminal.
    """
    parser = Command().create_parser("manage.py", "readtrack")
    [subcommands] = [action for action in parser._actions if action.dest == "subcommand"]
    parsers: Any = subcommands.choices
    return _sections((name, _command(name, parser)) for name, parser in parsers.items())


def _command(name: str, parser: ArgumentParser) -> str:
    arguments = [
        action
        for action in parser._actions
        if action.help != SUPPRESS and action.dest not in ("help",)
    ]
    usage = " ".join([name, *map(_usage, arguments)])
    paragraphs = [usage, (parser.description or "").strip(), *map(_argument, arguments)]
    return "\n".join(["```text", "\n\n".join(paragraphs), "```"])


def _usage(action: Action) -> str:
    """An argument as it is written, in brackets if it may be left out."""
    is_optional = not action.required or action.nargs in ("?", "*")
    return f"[{_written(action)}]" if is_optional else _written(action)


def _written(action: Action) -> str:
    words = [*action.option_strings[-1:]]
    if action.nargs != 0:  # a switch takes no value
        words.append(_value(action))
    return " ".join(words)


def _value(action: Action) -> str:
    """The value of an argument, such as `DAYS` or `{all,changed}`."""
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices:
        return f"{{{','.join(map(str, action.choices))}}}"
    return action.dest.upper() if action.option_strings else action.dest


def _argument(action: Action) -> str:
    meaning = (action.help or "") % vars(action)
    lines = textwrap.wrap(meaning, 90, break_on_hyphens=False, break_long_words=False)
    return "\n".join([_written(action), *(f"    {line}" for line in lines)])


def checks() -> str:
    """Every system check: its message and what to do."""
    rows = []
    package = Path(readtrack.__file__).parent
    for path in [*package.glob("checks/*.py"), *package.glob("*/checks.py")]:
        for call in _calls(path.read_text(encoding="utf-8"), ("Error", "Warning")):
            [message] = map(_words, call.args)
            options = {keyword.arg: _words(keyword.value) for keyword in call.keywords}
            level = ast.unparse(call.func).rpartition(".")[2].lower()
            rows.append((f"`{options['id']}`", level, f"{message} *{options['hint']}*"))
    rows.sort(key=_number_of_check)
    return _table(("id", "level", "message and *what to do*"), rows)


def _number_of_check(row: tuple[str, ...]) -> tuple[str, ...]:
    """The 001 of `readtrack.E001`, and the whole row for an error and a warning of one number."""
    return (row[0][-4:-1], *row)


def _calls(source: str, names: Iterable[str]) -> Iterator[ast.Call]:
    """The calls of functions or classes with these names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names:
            yield node


def _words(text: ast.expr) -> str:
    """A string of the source, or an f-string with "…" in place of each value."""
    if not isinstance(text, ast.JoinedStr):
        return str(ast.literal_eval(text))
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "…" for part in text.values
    )


def signal_list() -> str:
    """Every signal, by the comment above it."""
    package = Path(readtrack.__file__).parent
    sections = []
    for path in [package / "signals.py", *sorted(package.glob("*/signals.py"))]:
        module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        found = re.findall(
            r"((?:^# .*\n)+)(\w+) = Signal\(\)", path.read_text(encoding="utf-8"), re.MULTILINE
        )
        sections += [(f"`{module}.{name}`", comment.replace("# ", "")) for comment, name in found]
    return _sections(sections)


def schedule() -> str:
    """The jobs of the core."""
    seconds_by_name = intervals(conf.DEFAULTS["FLUSH_INTERVAL"])
    rows = ((f"`{name}`", f"{seconds:g} s") for name, seconds in seconds_by_name.items())
    return _table(("job", "every"), rows)


def _sections(parts: Iterable[tuple[str, str]]) -> str:
    return "\n\n".join(f"## {name}\n\n{text.strip()}" for name, text in parts)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines
    )


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings,
    "keys": key_table,
    "tags": tags,
    "commands": commands,
    "checks": checks,
    "signals": signal_list,
    "schedule": schedule,
    **{name: partial(section, module, names) for name, (module, names) in API.items()},
}
