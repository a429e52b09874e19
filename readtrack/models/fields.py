"""Fields of the app's own tables."""

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class ExactCharField(models.CharField):  # type: ignore[type-arg]  # generic in the stubs only
    """Text of which no two are equal that differ in case or accents. MySQL's and MariaDB's usual
    collations take these for one, and a character set of theirs may lack characters.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        parameters = super().db_parameters(connection)
        if connection.vendor == "mysql":
            return {**parameters, "collation": "utf8mb4_bin"}
        return parameters
