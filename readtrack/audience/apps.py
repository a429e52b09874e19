"""The app's configuration. Its page comes by `admin.py`, and its functions are imported."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext

from readtrack.parts import FormLink, PartConfig

if TYPE_CHECKING:
    from django.db.models import Model


class AudienceConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.audience"]`"""

    name = "readtrack.audience"
    label = "readtrack_audience"
    verbose_name = "Audience"

    def form_links(self, obj: "Model", user: Any, *, site: str) -> Sequence[FormLink]:
        from readtrack.audience import access
        from readtrack.subjects import has_read_state

        if not has_read_state(obj.__class__) or not access.may_view_readers(user):
            return ()
        return (FormLink(gettext("Who has read it"), access.readers_url(obj, site=site)),)
