"""The signals a site can listen to."""

from django.dispatch import Signal

# A circuit opened: Redis failed, and pages go on without it for `READTRACK["CIRCUIT"]` seconds.
# Sent with sender=None and error, once per opening.
redis_failed = Signal()

# A flush ended well. Sent with sender=None and run, the FlushRun.
flushed = Signal()
