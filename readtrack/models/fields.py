"""Fields of the app's own tables."""

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

# The collations that compare texts byte by byte, by the vendor of the database.
BYTE_BY_BYTE = {"mysql": "utf8mb4_bin", "postgresql": "C"}


class ExactCharField(models.CharField):  # type: ignore[type-arg]  # generic in the stubs only
    """Text that is compared byte by byte, because nobody reads these texts in alphabetical order.

    MySQL's and MariaDB's usual collations take texts that differ in case or accents for one, and a
    character set of theirs may lack characters. Most databases of PostgreSQL have a language,
    such as `en_US.UTF-8`. By its rules a flush takes PostgreSQL up to twice the time, and a
    condition on the beginning of a text finds no index.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        parameters = super().db_parameters(connection)
        if connection.vendor in BYTE_BY_BYTE:
            return {**parameters, "collation": BYTE_BY_BYTE[connection.vendor]}
        return parameters

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        column_type: str | None = super().db_type(connection)
        if connection.vendor == "postgresql" and column_type:
            # To a primary key that is a `varchar`, Django adds a second index, for LIKE. With this
            # collation that of the primary key serves LIKE, too.
            return column_type.replace("varchar", "character varying", 1)
        return column_type
