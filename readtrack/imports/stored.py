"""The stored counts of rows that an import names."""

from collections.abc import Sequence
from typing import Any

from django.db import Error
from django.db.models import Model

from readtrack.sql import row_counts, vendors
from readtrack.sql.row_counts import RowCounts


def stored_of_any(model: type[Model], pks: Sequence[Any]) -> dict[Any, RowCounts]:
    """Returns what `row_counts.stored` does, for keys of which some may be impossible: texts with
    characters that the database lacks. Call it outside of transactions.
    """
    try:
        return row_counts.stored(model, pks)
    except Error as error:
        if not vendors.is_impossible_value(error):
            raise
    half = len(pks) // 2
    if not half:
        return {}
    return {**stored_of_any(model, pks[:half]), **stored_of_any(model, pks[half:])}
