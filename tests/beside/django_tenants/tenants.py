"""The function for PREFIX, as docs/howto/redis.md has it."""

from django.db import connection


def schema() -> str:
    return connection.schema_name
