"""History that a test divided by month is one table again."""

from typing import Any

ONE_TABLE = """
CREATE TABLE one (LIKE readtrack_history INCLUDING ALL);
INSERT INTO one SELECT * FROM readtrack_history;
DROP TABLE readtrack_history CASCADE;
ALTER TABLE one RENAME TO readtrack_history
"""


def unite(connection: Any) -> None:
    """Makes one table of all partitions again."""
    with connection.cursor() as cursor:
        cursor.execute(ONE_TABLE)
