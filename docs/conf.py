"""Settings of Sphinx, which `manage.py docs` runs. The pages hold their generated parts already."""

import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent.parent))

from docs import llms
from docs.release import urls
from readtrack import __version__
from readtrack.conf import DEFAULTS

project = "readtrack"
author = copyright = "the readtrack developers"  # noqa: A001 - Sphinx's name
version = release = __version__
extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_baseurl = urls()["Documentation"]
html_title = f"readtrack {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = html_copy_source = False
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
python_use_unqualified_type_names = True
maximum_signature_line_length = 240
add_module_names = False
# Types of other projects, and those that the signatures of this one name in passing, have no page
# here.
nitpick_ignore_regex = [("py:.*", r"(?!readtrack\.\w+\.\w+$).*")]
nitpick_ignore = [("py:class", "readtrack.subjects.AnyModel")]  # a type variable


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
    app.connect("doctree-read", link_settings)
    app.connect("build-finished", llms.write)
