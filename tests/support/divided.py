"""History that a test divided by month is one table again."""

from typing import Any

ONE_TABLE = """
CREATE TABLE one (LIKE readtrack_numbers_history INCLUDING ALL) WITH (fillfactor = 85);
INSERT INTO one SELECT * FROM readtrack_numbers_history;
DROP TABLE readtrack_numbers_history CASCADE;
ALTER TABLE one RENAME TO readtrack_numbers_history
"""


def unite(connection: Any) -> None:
    """Makes one table of all partitions again."""
    with connection.cursor() as cursor:
        cursor.execute(ONE_TABLE)
