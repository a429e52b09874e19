"""The signals a site can listen to."""

from django.dispatch import Signal

# Sent when a page notices that Redis failed, once until Redis answers again, by each process. Pages
# then go on without Redis, and try it again every five seconds or more often. Arguments: `sender`
# (None), `error` (the exception).
redis_failed = Signal()

# Sent when a flush has ended well. Arguments: `sender` (None), `record` (the `FlushRun`, saved).
flushed = Signal()
