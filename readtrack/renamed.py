"""Names that settings had in earlier releases, and their names of today.

To rename a setting with a deprecation, give it the new name in conf.py and add an entry to
`RENAMED` here. The old name still works, and a check warns.
"""

from collections.abc import Mapping
from typing import Any

# Old name -> new name, which takes the same values.
RENAMED: dict[str, str] = {}


def current_names(site: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the site's settings by their current names.

    If the site has both the old and the new name of a setting, the new one counts.
    """
    settings = {RENAMED.get(name, name): value for name, value in site.items()}
    given_by_current_name = {name: site[name] for name in settings if name in site}
    return {**settings, **given_by_current_name}
