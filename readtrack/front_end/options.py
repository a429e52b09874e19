"""The setting FRONT_END: which rows a user may ask for."""

from typing import NamedTuple

from readtrack.conf import cached_setting, conf, with_defaults


class FrontEndOptions(NamedTuple):
    """The keys of FRONT_END, their types and their defaults."""

    #: Path of a function (request, queryset) -> the rows that the user may see.
    queryset: str = ""


@cached_setting(maxsize=1)
def front_end_options() -> FrontEndOptions:
    """Returns the values of FRONT_END, with defaults for those that the site leaves out."""
    return with_defaults(conf.of_part("FRONT_END"), FrontEndOptions)
