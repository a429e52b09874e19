"""Pages whose parts are generated: each stands between `<!-- generated: settings -->` and
`<!-- end of settings -->`.
"""

import re
from pathlib import Path

from docs.reference import PARTS

FOLDER = Path(__file__).parent
PART = re.compile(
    r"(?P<start><!-- generated: (?P<name>\w+) -->\n).*?(?P<end><!-- end of (?P=name) -->)",
    re.DOTALL,
)


def write() -> list[Path]:
    """Writes each page anew whose generated parts have changed. Returns the changed pages."""
    changed = outdated()
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
    return [*changed]


def outdated() -> dict[Path, str]:
    """Returns the pages whose generated parts have changed, with the text that they should have."""
    changed = {}
    for path in sorted(FOLDER.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        renewed = renew(text)
        if renewed != text:
            changed[path] = renewed
    return changed


def renew(text: str) -> str:
    """Returns the text of a page with its generated parts as the code is now."""
    return PART.sub(_part, text)


def _part(found: "re.Match[str]") -> str:
    content = PARTS[found["name"]]().strip()
    return f"{found['start']}\n{content}\n\n{found['end']}"


def without_parts(text: str) -> str:
    """Returns the text of a page without its generated parts: what people have written."""
    return PART.sub("", text)
