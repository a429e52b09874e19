"""Sphinx builds this folder: `python -m sphinx -W --keep-going -n docs docs/_build/html`."""

import os
import re
import sys
from pathlib import Path

import django
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

os.environ["DJANGO_SETTINGS_MODULE"] = "demo_project.settings"
django.setup()

import reference  # noqa: E402 - the code that it reads needs Django

from readtrack import __version__  # noqa: E402
from readtrack.conf import DEFAULTS  # noqa: E402

project = "readtrack"
author = copyright = "the readtrack developers"  # noqa: A001 - Sphinx's name
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"readtrack {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = html_copy_source = False
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 240
autodoc_preserve_defaults = True
add_module_names = False
default_role = "code"  # docstrings quote code in single backticks
# Types of other projects, and those that the signatures of this one name in passing, have no page
# here.
nitpick_ignore_regex = [("py:.*", r"(?!readtrack\.\w+\.\w+$).*")]
nitpick_ignore = [("py:class", "readtrack.subjects.AnyModel")]  # a type variable


def generate(app: Sphinx, page: str, source: list[str]) -> None:
    """Puts what is generated in place of `<!-- generated: settings -->`."""
    source[0] = re.sub(
        r"<!-- generated: (\w+) -->", lambda found: reference.PARTS[found[1]](), source[0]
    )


def link_settings(app: Sphinx, page: nodes.document) -> None:
    """Turns the name of a setting, wherever a page quotes it, into a link to the setting."""
    for node in list(page.findall(nodes.literal)):
        if node.astext() in DEFAULTS and not isinstance(node.parent, nodes.title | nodes.reference):
            link = addnodes.pending_xref(
                "",
                node.deepcopy(),
                refdomain="std",
                reftype="confval",
                reftarget=node.astext(),
                refexplicit=False,
            )
            link["refdoc"] = app.env.docname
            link["refwarn"] = True
            node.replace_self(link)


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", generate)
    app.connect("doctree-read", link_settings)
