"""The list of public names: what a site may use, one line each, read out of the reference.

`public_names.txt` has the list as it was last recorded. A test fails where the code differs from
it, so that no public name goes or changes unnoticed. `manage.py docs --record-names` records it.
"""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from docs.python_api import signature
from docs.reference import API, PARTS
from readtrack.hits.hit import REASONS
from readtrack.templatetags.readtrack import register
from readtrack.urls import app_name, urlpatterns

RECORD = Path(__file__).parent / "public_names.txt"
HEAD = "# What a site may use. Written by: python3 manage.py docs --record-names\n"
METRICS = Path(__file__).parent / "howto" / "metrics.md"
STYLE = Path(__file__).parent.parent / "readtrack" / "static" / "readtrack" / "readtrack.css"
DIRECTIVE = re.compile(
    r"^`+\{py:(?P<kind>\w+)\} (?P<name>\w+)(?P<signature>.*)\n(?P<options>(?::\w+: .+\n)*)",
    re.MULTILINE,
)


class Difference(NamedTuple):
    """What differs between the record and the code."""

    gone: list[str]  # or changed: a site that uses it breaks
    new: list[str]


def difference() -> Difference:
    """Returns the lines that only the record has, and those that only the code has."""
    recorded = RECORD.read_text(encoding="utf-8").removeprefix(HEAD).splitlines()
    current = lines()
    return Difference(
        gone=[line for line in recorded if line not in current],
        new=[line for line in current if line not in recorded],
    )


def record() -> None:
    """Writes the record anew."""
    RECORD.write_text(HEAD + "".join(f"{line}\n" for line in lines()), encoding="utf-8")


def lines() -> list[str]:
    """Returns the list, sorted. The first word of a line says what the name is."""
    return sorted(
        [
            *_python(),
            *_settings(),
            *_tags(),
            *_commands(),
            *_signals_and_jobs(),
            *_checks(),
            *_keys(),
            *_addresses(),
            *_metrics(),
            *_style(),
            *(f"reason {reason}" for reason in REASONS),
        ]
    )


def _python() -> Iterator[str]:
    """Yields functions, classes and their members with their signatures."""
    for name, (module, _) in API.items():
        text = PARTS[name]()
        owner = module.__name__
        for found in DIRECTIVE.finditer(text):
            options = dict(re.findall(r"^:(\w+): (.+)$", found["options"], re.MULTILINE))
            if "module" in options:  # a member has none
                owner = module.__name__
            value = f" = {_unquoted(options['value'])}" if "value" in options else ""
            type_of = f": {_unquoted(options['type'])}" if "type" in options else ""
            yield f"python {owner}.{found['name']}{found['signature']}{type_of}{value}"
            if found["kind"] in ("class", "exception"):
                owner = f"{module.__name__}.{found['name']}"
        for listed in re.findall(r"^For the event loop: (.+)\.$", text, re.MULTILINE):
            for function in re.findall(r"`(\w+)`", listed):
                yield f"python {module.__name__}.{function}, as {function[1:]} for the event loop"


def _unquoted(option: str) -> str:
    """Returns the value of a directive's option: YAML in '`…`', or JSON."""
    if option.startswith("'"):
        return option[2:-2].replace("''", "'")
    return str(json.loads(option))


def _settings() -> Iterator[str]:
    setting = r"\{confval\} ([\w.]+)\n:type: (.+)\n:default: (.+)\n"
    for name, type_of, default in re.findall(setting, PARTS["settings"]()):
        yield f"setting {name}: {_unquoted(type_of)} = {_unquoted(default)}"


def _tags() -> Iterator[str]:
    """Yields tags with their arguments; one that parses itself, with its first example."""
    for name, tag in register.tags.items():
        function: Any = inspect.unwrap(tag)
        if "parser" in inspect.signature(function).parameters:
            [example] = re.findall(r"^`(.+?)`", inspect.getdoc(function) or "", re.DOTALL)
            yield f"tag {name}, as in {' '.join(example.split())}"
        else:
            yield f"tag {name}{signature(function)}"


def _commands() -> Iterator[str]:
    """Yields commands with their arguments."""
    for _, usage in re.findall(r"^## (.+)\n\n```text\n(.+)$", PARTS["commands"](), re.MULTILINE):
        yield f"command {usage}"


def _signals_and_jobs() -> Iterator[str]:
    for name in re.findall(r"^## `(.+)`$", PARTS["signals"](), re.MULTILINE):
        yield f"signal {name}"
    for name in re.findall(r"^\| `(.+?)` \|", PARTS["schedule"](), re.MULTILINE):
        yield f"job {name}"


def _checks() -> Iterator[str]:
    """Yields ids, which sites name in `SILENCED_SYSTEM_CHECKS`, with their levels."""
    for name, level in re.findall(r"^\| `(.+?)` \| (\w+) \|", PARTS["checks"](), re.MULTILINE):
        yield f"check {name}, {level}"


def _keys() -> Iterator[str]:
    for name, type_of in re.findall(r"^\| `(.+?)` \| (.+?) \|", PARTS["keys"](), re.MULTILINE):
        yield f"key {name}, {type_of}"


def _addresses() -> Iterator[str]:
    """Yields the addresses of `readtrack.urls`, with the names by which they are reversed."""
    for pattern in urlpatterns:
        name = f", {app_name}:{pattern.name}" if pattern.name else ""
        yield f"address {pattern.pattern}{name}"


def _metrics() -> Iterator[str]:
    """Yields metrics with their labels. A test compares the table with what the endpoint gives."""
    row = r"^\| `(readtrack_\w+)` \| (?:`(\w+)`)? ?\|"
    for name, label in re.findall(row, METRICS.read_text(encoding="utf-8"), re.MULTILINE):
        yield f"metric {name}{{{label}}}" if label else f"metric {name}"


def _style() -> Iterator[str]:
    """Yields the properties and the classes of the style sheet."""
    text = STYLE.read_text(encoding="utf-8")
    for name in set(re.findall(r"--readtrack-[\w-]+|\.readtrack-[\w-]+", text)):
        yield f"style {name}"
