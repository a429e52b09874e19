#!/usr/bin/env python3
"""The demo, the tests and Django's own commands. Nothing needs to be installed first."""

# Old Pythons must get far enough to read the refusal: no newer syntax here, and no import before
# it.
import sys

USAGE = """\
  python3 manage.py demo           the example site, with servers and traffic of its own
  python3 manage.py test           the tests without the slow ones; all: test --all; words are passed on: test -k flush -x
  python3 manage.py lint           format, rules, types, imports, migrations: lint --fix
  python3 manage.py docs           the reference pages, and the site in docs/_build/html
  python3 manage.py benchmark      how fast it is: benchmark record page flush
  python3 manage.py COMMAND        any Django command, on the example site

The first of them makes the environment .venv/pyX.Y, which needs the network and some seconds.
"""


def refusal(version: "tuple[int, ...]") -> str:
    """Why this Python will not do; empty when it will."""
    if version >= (3, 10):
        return ""
    return (
        f"readtrack needs Python 3.10 or newer, and this is {version[0]}.{version[1]} ({sys.executable}).\n"
        "Try a newer one by name, for example: python3.12 manage.py demo"
    )


def main(words: "list[str]") -> int:
    """Run one command line, in an environment that has what it needs."""
    if refusal(sys.version_info[:2]):
        sys.exit(refusal(sys.version_info[:2]))
    from demo_project import commands

    if words[:1] == ["demo"]:
        return commands.demo(words[1:])
    if words[:1] == ["test"]:
        return commands.test(words[1:])
    if words[:1] == ["lint"]:
        return commands.lint(words[1:])
    if words[:1] == ["docs"]:
        return commands.docs(words[1:])
    if words[:1] == ["benchmark"]:
        return commands.benchmark(words[1:])
    if words in ([], ["help"], ["--help"], ["-h"]):
        return commands.overview(USAGE)
    return commands.django(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
