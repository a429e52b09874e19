"""SQL expressions for the number of the period that a value is in."""

from collections.abc import Sequence

from readtrack.sql.vendors import Vendor


def number_of_part(column: str, starts: Sequence[str], first: int = 0) -> str:
    """Returns the SQL expression for the number of the part that the value of the column is in.

    `starts` are the first values of the parts, in SQL and sorted; `first` is the number of the
    first part, which has all earlier values, too.
    """
    if len(starts) == 1:
        return str(first)
    # A binary search, because a year has many parts.
    half = len(starts) // 2
    earlier = number_of_part(column, starts[:half], first)
    later = number_of_part(column, starts[half:], first + half)
    return f"CASE WHEN {column} < {starts[half]} THEN {earlier} ELSE {later} END"


def period_of_hour(starts: Sequence[int], vendor: Vendor) -> str:
    """Returns the SQL expression for the number of the period that the column `hour` is in.

    `starts` are the first hours of the periods (since 1970).
    """
    texts = [*map(str, starts)]
    if vendor.has_arrays:
        return f"width_bucket(hour, ARRAY[{', '.join(texts)}]) - 1"
    return number_of_part("hour", texts)
