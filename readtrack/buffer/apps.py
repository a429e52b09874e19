"""The app's configuration: what views that wait in the process add to readtrack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from readtrack.parts import Check, PartConfig

if TYPE_CHECKING:
    from readtrack.store.sending import Sending


class BufferConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.buffer"]`"""

    name = "readtrack.buffer"
    label = "readtrack_buffer"
    verbose_name = _("Buffer of views")
    setting = "BUFFER"
    setting_about = "how long views wait in a process, to be sent together"
    scripts = ("record_batch",)
    scripts_run_once = ("record_batch",)

    def setting_keys(self) -> type[Any]:
        from readtrack.buffer.options import BufferOptions

        return BufferOptions

    def checks(self) -> Sequence[Check]:
        from readtrack.buffer import checks

        return (checks.check_seconds,)

    def sending(self) -> "Sending | None":
        from readtrack.buffer.options import buffer_options

        if not buffer_options().seconds:
            return None
        from readtrack.buffer.queue import hit_buffer

        return hit_buffer
