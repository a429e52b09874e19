"""Routers for tests that are not about the default database."""

from typing import Any


class Lite:
    """Keeps all models in SQLite."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "lite"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "lite"

    def allow_relation(self, one: Any, other: Any, **hints: Any) -> bool:
        return True
