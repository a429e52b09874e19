"""The app's configuration: the numbers of a scope, which other parts need."""

from django.utils.translation import gettext_lazy as _

from readtrack.parts import PartConfig


class NumbersConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.numbers"]`"""

    name = "readtrack.numbers"
    label = "readtrack_numbers"
    verbose_name = _("Numbers")
