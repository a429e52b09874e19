"""What the checks find, as the tests ask for it."""

from django.core.checks import CheckMessage

from readtrack.checks.setup import check_setup


def found() -> list[str | None]:
    """The ids of what is wrong."""
    return [message.id for message in check_setup(None)]


def the_message(check_id: str) -> CheckMessage:
    [message] = [message for message in check_setup(None) if message.id == check_id]
    return message
