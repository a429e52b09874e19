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


class ExactKeyField(ExactCharField):
    """A primary key of text whose rows only a rename looks up by the beginning of the text.

    To such a column of PostgreSQL, Django adds a second index, for LIKE, unless its type has
    another name than `varchar`. That index would be as large as that of the primary key.
    """

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        column_type: str | None = super().db_type(connection)
        if connection.vendor == "postgresql" and column_type:
            return column_type.replace("varchar", "character varying", 1)
        return column_type
