"""What tests need where views wait in the process."""

from readtrack.buffer import queue
from readtrack.buffer.queue import hit_buffer

queue.GRACE = 60.0  # a busy machine may be slow


def send() -> None:
    """Sends what is queued now, as the end of a process does, and begins anew."""
    hit_buffer.close()
    hit_buffer.clear()
