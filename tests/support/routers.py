"""Routers for tests that are not about the default database."""

from typing import Any


class PostsInLite:
    """Keeps posts in SQLite, and all other models in the default database."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return self.db_for_write(model)

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "lite" if model._meta.label == "site.Post" else None

    def allow_relation(self, one: Any, other: Any, **hints: Any) -> bool:
        return True


class UsersInLite:
    """Keeps users, their permissions and their sessions in SQLite, and all else in the default
    database.
    """

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return self.db_for_write(model)

    def db_for_write(self, model: Any, **hints: Any) -> str:
        is_of_users = model._meta.app_label in {"auth", "admin", "sessions", "contenttypes"}
        return "lite" if is_of_users else "default"

    def allow_relation(self, one: Any, other: Any, **hints: Any) -> bool:
        return True


class Lite:
    """Keeps all models in SQLite."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "lite"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "lite"

    def allow_relation(self, one: Any, other: Any, **hints: Any) -> bool:
        return True
