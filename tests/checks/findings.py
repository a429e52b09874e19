"""Results of the checks for tests."""

from django.core.checks import CheckMessage

from readtrack.checks.setup import check_setup


def found() -> list[str | None]:
    """Returns the ids of all problems."""
    return [message.id for message in check_setup(None)]


def the_message(check_id: str) -> CheckMessage:
    [message] = [message for message in check_setup(None) if message.id == check_id]
    return message
