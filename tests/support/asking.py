"""What a process has asked Redis and SQL, and asks again only after a while."""

from readtrack.sql import read_states


def ask_again() -> None:
    """Lets this process ask at once whether the read state of a new site may begin."""
    read_states._asked_at = -read_states.PAUSE
