"""The signal of alerts, to which a site can listen."""

from django.dispatch import Signal

# Sent once for each alert, by the process that runs the schedule. Arguments: `sender` (None),
# `alert` (the `Alert`, saved).
alert = Signal()
