"""What the words say when a server fails: one line, and one with what to do."""

from django.core.management.base import CommandError
from django.db import Error, OperationalError, ProgrammingError
from django.utils.translation import gettext

from readtrack.doctor import findings
from readtrack.store.connection import RedisError, misconfiguration


def redis_failed(error: RedisError, hint: str = "") -> CommandError:
    """To raise in place of the error."""
    message = gettext("Redis failed: %(error)s") % {"error": error}
    return CommandError(f"{message}\n{hint or findings.redis_failed(error)[1]}")


def check_settings() -> None:
    """Raises where CACHES names no Redis."""
    if problem := misconfiguration():
        raise CommandError("\n".join(findings.misconfigured(problem)))


def database_failed(error: Error, hint: str) -> CommandError:
    """To raise in place of the error; an unknown table or column most often is a migration that did not run."""
    message = gettext("The database failed: %(error)s") % {"error": error}
    if isinstance(error, (ProgrammingError, OperationalError)):
        hint = f"{hint} {gettext('Or does it lack a table? Then run: manage.py migrate')}"
    return CommandError(f"{message}\n{hint}")
