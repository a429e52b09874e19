"""The setting THREADS: how long a publication can be unread."""

from typing import NamedTuple

from readtrack.conf import cached_setting, conf, with_defaults


class ThreadsOptions(NamedTuple):
    """The keys of THREADS, their types and their defaults."""

    days: int = 90  # days for which publications are known; what is older counts as read


@cached_setting("INSTALLED_APPS", maxsize=1)
def threads_options() -> ThreadsOptions:
    """Returns the values of THREADS, with defaults for those that the site leaves out."""
    return with_defaults(conf.of_part("THREADS"), ThreadsOptions)
