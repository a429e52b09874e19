"""Where models live when a test is not about the default database."""

from typing import Any


class Lite:
    """Everything on SQLite."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "lite"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "lite"

    def allow_relation(self, one: Any, other: Any, **hints: Any) -> bool:
        return True
