"""Elements as lists, from which the page's script makes them.

A content security policy with `require-trusted-types-for 'script'` refuses HTML that comes from a
script, but it lets a script make elements and give them attributes and text.
"""

import re
from html.parser import HTMLParser
from typing import Any

# An element is a list: its name, its attributes, and what is in it, elements and texts.
Element = list[Any]

# Elements that have no end tag.
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "source", "wbr"}
# Elements of another namespace than HTML's, in which names have capital letters.
NAMESPACES = {
    "svg": "http://www.w3.org/2000/svg",
    "math": "http://www.w3.org/1998/Math/MathML",
}


def element_of(html: str) -> Element:
    """Returns the first element of the HTML. Raises ValueError if there is none."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    for node in parser.nodes:
        if isinstance(node, list):
            return node
    raise ValueError("The HTML has no element.")


class _Parser(HTMLParser):
    """Collects the elements of a template's HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.nodes: list[Any] = []  # elements and texts that are in no other element
        # The elements that have begun and not ended, the innermost one last.
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        is_foreign = tag in NAMESPACES or any(name in NAMESPACES for name, *_ in self._open)
        if tag in NAMESPACES:
            attributes["xmlns"] = NAMESPACES[tag]
        if is_foreign:  # `viewBox`, of which the parser makes `viewbox`
            written = self.get_starttag_text() or ""
            tag = _as_written(tag, written)
            attributes = {_as_written(name, written): attributes[name] for name in attributes}
        element: Element = [tag, attributes]
        self._add(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        names = [name.lower() for name, *_ in self._open]
        if tag not in names:
            return
        while names.pop() != tag:  # an element without an end tag ends with the one around it
            self._open.pop()
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._add(data)

    def _add(self, node: Element | str) -> None:
        """Adds what comes next to the innermost open element."""
        siblings = self._open[-1] if self._open else self.nodes
        siblings.append(node)


def _as_written(name: str, tag: str) -> str:
    """Returns the name of an element or an attribute with the letters that its tag has."""
    found = re.search(rf"(?<![\w:-]){re.escape(name)}(?![\w:-])", tag, re.IGNORECASE)
    return found[0] if found else name
