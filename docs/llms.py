"""Writes `llms.txt` and `llms-full.txt` beside the site: the pages for language models.

`llms.txt` (https://llmstxt.org) lists the pages with their addresses and first sentences.
`llms-full.txt` has their whole text, after Sphinx has resolved links and included files.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.text import TextBuilder

RULE = "=" * 80
# Some paragraphs begin with a sentence of a word or two.
SENTENCES = re.compile(r".{40,}?[.:](?= |$)")


class Page(NamedTuple):
    """A page of the site. `section` is the caption under which the navigation has it."""

    section: str
    name: str
    title: str
    summary: str
    address: str


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes both files. Sphinx calls this after a build."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    pages = list(_pages(app))
    folder.joinpath("llms.txt").write_text(_index(app, pages), encoding="utf-8")
    folder.joinpath("llms-full.txt").write_text(_full_text(app, pages), encoding="utf-8")


def _pages(app: Sphinx) -> Iterator[Page]:
    """Yields the pages in the order of the navigation."""
    root = app.config.root_doc
    for tree in app.env.get_doctree(root).findall(addnodes.toctree):
        for _, name in tree["entries"]:
            yield Page(
                section=tree["caption"] or "",
                name=name,
                title=app.env.titles[name].astext(),
                summary=_summary(app.env.get_doctree(name)),
                address=f"{app.config.html_baseurl}{app.builder.get_target_uri(name)}",
            )


def _summary(page: nodes.document) -> str:
    """Returns how the page begins, up to the end of a sentence."""
    for paragraph in page.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            text = " ".join(paragraph.astext().split())
            found = SENTENCES.match(text)
            return (found[0] if found else text).removesuffix(":")
    return ""


def _index(app: Sphinx, pages: list[Page]) -> str:
    lines = [
        f"# {app.config.project}",
        "",
        f"> {_summary(app.env.get_doctree(app.config.root_doc))}",
    ]
    section = ""
    for page in pages:
        if page.section != section:
            section = page.section
            lines += ["", f"## {section}", ""]
        summary = f": {page.summary}" if page.summary else ""
        lines.append(f"- [{page.title}]({page.address}){summary}")
    lines += [
        "",
        "## Optional",
        "",
        f"- [All pages in one file]({app.config.html_baseurl}llms-full.txt)",
    ]
    return "\n".join(lines) + "\n"


def _full_text(app: Sphinx, pages: list[Page]) -> str:
    builder = TextBuilder(app, app.env)
    builder.init()
    texts = []
    for page in pages:
        tree = app.env.get_and_resolve_doctree(page.name, builder)
        texts.append(f"{RULE}\n{page.address}\n{RULE}\n\n{_text(tree, builder)}")
    return "\n".join(texts)


def _text(tree: nodes.document, builder: TextBuilder) -> str:
    """Returns a resolved page as plain text."""
    visitor = builder.create_translator(tree, builder)
    tree.walkabout(visitor)
    return str(visitor.body)
