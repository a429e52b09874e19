"""The setting BUFFER: how long views wait."""

from typing import NamedTuple

from readtrack.conf import cached_setting, conf, with_defaults


class BufferOptions(NamedTuple):
    """The keys of BUFFER, their types and their defaults."""

    #: Seconds that views wait in a process, to be sent together; 0: each page sends its own.
    seconds: int = 0


@cached_setting(maxsize=1)
def buffer_options() -> BufferOptions:
    """Returns the values of BUFFER, with defaults for those that the site leaves out."""
    return with_defaults(conf.of_part("BUFFER"), BufferOptions)
