"""What `.ci/release` needs from the texts: the notes of a version, and a README for PyPI.

    python -m docs.release v0.1.0 --source FOLDER --notes FILE

Needs no Django, because nothing is installed yet.
"""

import argparse
import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
RELATIVE = re.compile(r"(?P<before>!?\[[^\]]*\]\()(?!\w+:|#)(?P<path>[^)\s]+)\)")
HEADING = re.compile(r"^## (?P<version>\S+), (?P<date>.+)$", re.MULTILINE)


class ReleaseError(Exception):
    """This commit cannot be released by that tag; the message says why."""


def main(words: list[str]) -> int:
    """Returns 0, or 1 if the tag and the texts differ."""
    parser = argparse.ArgumentParser(prog="python -m docs.release", description=__doc__)
    parser.add_argument("tag", help="such as v0.1.0")
    parser.add_argument("--source", type=Path, required=True, help="folder to change the README in")
    parser.add_argument("--notes", type=Path, required=True, help="file to write the notes to")
    options = parser.parse_args(words)
    readme = options.source / "README.md"
    try:
        notes = notes_of(options.tag, changes=read("CHANGELOG.md"), version=version())
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    options.notes.write_text(notes, encoding="utf-8")
    text = with_addresses(
        readme.read_text(encoding="utf-8"), tag=options.tag, source=urls()["Source"]
    )
    readme.write_text(text, encoding="utf-8")
    return 0


def read(name: str) -> str:
    """Returns the text of a file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def urls() -> dict[str, str]:
    """Returns the addresses of the project by their names, as pyproject.toml has them."""
    addresses: dict[str, str] = tomllib.loads(read("pyproject.toml"))["project"]["urls"]
    return addresses


def version() -> str:
    """Returns the version of the package, without importing it."""
    [found] = re.findall(r'^__version__ = "(.+)"$', read("readtrack/__init__.py"), re.MULTILINE)
    return str(found)


def notes_of(tag: str, *, changes: str, version: str) -> str:
    """Returns what the changelog says of the version. Raises ReleaseError where the tag is of another
    version, or the changelog has no date for it.
    """
    if tag != f"v{version}":
        raise ReleaseError(
            f"The tag is {tag}, and the version in readtrack/__init__.py is {version}."
        )
    for heading in HEADING.finditer(changes):
        if heading["version"] != version:
            continue
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", heading["date"]):
            raise ReleaseError(f"CHANGELOG.md has no date for {version}, but: {heading['date']}")
        return changes[heading.end() :].partition("\n## ")[0].strip() + "\n"
    raise ReleaseError(f"CHANGELOG.md has no heading for {version}.")


def with_addresses(text: str, *, tag: str, source: str) -> str:
    """Returns a page whose links and pictures lead to the files of that tag on the code host."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["before"].startswith("!") else "blob"
        return f"{link['before']}{source.rstrip('/')}/{kind}/{tag}/{link['path']})"

    return RELATIVE.sub(absolute, text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
