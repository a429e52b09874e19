"""SQL's copy of the ordinals of readers. An ordinal belongs to one reader for ever.

Redis gives the ordinals. A Redis that a snapshot replaced may give one to a second reader, and a
snapshot that knows of the last flush is not known as an older one. So whoever stores ordinals looks
for others with the same one. Nobody has a shared ordinal from then on: whose reads it stands for is
not known, so both readers start with everything unread. Its row stays, under a name that no reader
has, so that it is not given again.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from django.db.models import Count, Max, Min, Q

from readtrack.hits import readers
from readtrack.models import ReaderNumber
from readtrack.sql import databases
from readtrack.store import scripts
from readtrack.store.read_state import copies

RETIRED = "!"  # begins the name in the row of an ordinal that nobody has any more


def exist() -> bool:
    """Returns True if SQL has ordinals, and the site uses them. Raises django.db.Error."""
    return readers.has_ordinals() and databases.rows(ReaderNumber).exists()


def following(tag: str) -> int:
    """Returns the ordinal after the highest one that SQL knows in the partition; 0 if it knows
    none. Raises django.db.Error.
    """
    rows_of_partition = databases.rows(ReaderNumber).filter(tag=tag)
    highest = rows_of_partition.aggregate(highest=Max("number"))["highest"]
    if highest is None:
        return 0
    return int(highest) + 1


def of(name: str) -> dict[str, int]:
    """Returns the ordinals of the reader called `name`, by the tags of the partitions.

    Raises django.db.Error.
    """
    return dict(databases.rows(ReaderNumber).filter(name=name).values_list("tag", "number"))


def store(tag: str, numbers: Mapping[str, int]) -> None:
    """Stores new ordinals of a partition, by the names of the readers, and lets Redis know.

    Raises redis.RedisError or django.db.Error.
    """
    if not numbers:
        return
    rows = _rows_with(tag, numbers)
    # A reader came anew to a Redis that had lost the ordinal. Nobody else may get the former one.
    while former_numbers := _former_numbers(rows, numbers):
        _retire(tag, former_numbers)
        rows = _rows_with(tag, numbers)
    _separate(tag, rows)
    copies.forget_new_readers(tag, numbers)


def _former_numbers(rows: Sequence[ReaderNumber], numbers: Mapping[str, int]) -> set[int]:
    """Returns the ordinals that the rows have of readers who have other ones now, in `numbers`."""
    return {row.number for row in rows if numbers.get(row.name, row.number) != row.number}


def separate_all(tag: str) -> None:
    """Takes away all ordinals of a partition that several readers have.

    Raises redis.RedisError or django.db.Error.
    """
    rows_of_partition = databases.rows(ReaderNumber).filter(tag=tag)
    by_number = rows_of_partition.order_by().values("number").annotate(readers=Count("name"))
    shared = [*by_number.filter(readers__gt=1).values_list("number", flat=True)]
    for portion in scripts.sliced(shared):
        _separate(tag, [*rows_of_partition.filter(number__in=portion)])


def portions(tag: str) -> Iterator[list[tuple[str, int]]]:
    """Yields lists of the readers of a partition, by ordinal, the lowest first.

    A reader is the name and the ordinal. An ordinal that several readers have by mistake stands for
    none of them, so a name is made up for it. The first list may be empty. Raises django.db.Error.
    """
    rows_of_partition = databases.rows(ReaderNumber).filter(tag=tag).order_by("number")
    by_number = rows_of_partition.values("number").annotate(
        readers=Count("name"), first_name=Min("name")
    )
    portion = [*by_number[: scripts.SLICE]]
    yield _named(portion)
    while portion:
        following_rows = by_number.filter(number__gt=portion[-1]["number"])
        portion = [*following_rows[: scripts.SLICE]]
        yield _named(portion)


def _named(portion: "Sequence[Mapping[str, Any]]") -> list[tuple[str, int]]:
    """Returns the name and the ordinal of each reader, see `portions`."""
    numbers = []
    for row in portion:
        number = row["number"]
        name = f"{RETIRED}{number}"
        if row["readers"] == 1:
            name = str(row["first_name"])
        numbers.append((name, number))
    return numbers


def retire_reader(name: str, ordinals: Mapping[str, int]) -> None:
    """Removes the name of a reader from SQL. Nobody gets the ordinals of the reader again.

    `ordinals` are those that Redis knows, by the tags of the partitions. Raises django.db.Error.
    """
    for ordinal_by_tag in (of(name), ordinals):
        for tag, number in ordinal_by_tag.items():
            _retire(tag, [number])


def _rows_with(tag: str, numbers: Mapping[str, int]) -> list[ReaderNumber]:
    """Inserts the ordinals of those readers who have no row. Returns all rows that have one of the
    names or one of the ordinals.

    Each caller looks after the insertion is committed. So of two callers who insert one ordinal at
    once, the later one sees both.
    """
    rows = [ReaderNumber(tag=tag, name=name, number=number) for name, number in numbers.items()]
    insert = partial(databases.rows(ReaderNumber).bulk_create, rows, ignore_conflicts=True)
    databases.retried(databases.of(ReaderNumber), insert)
    has_name_or_number = Q(name__in=[*numbers]) | Q(number__in=[*numbers.values()])
    return [*databases.rows(ReaderNumber).filter(has_name_or_number, tag=tag)]


def _separate(tag: str, rows: Sequence[ReaderNumber]) -> None:
    """Takes an ordinal that several of the rows have away from all of them."""
    names_by_number: dict[int, list[str]] = {}
    for row in rows:
        names_by_number.setdefault(row.number, []).append(row.name)
    shared = {number: names for number, names in names_by_number.items() if len(names) > 1}
    if not shared:
        return
    # First in Redis, so that SQL still shows what to do if this is killed between the two.
    copies.retire(tag, [(name, number) for number, names in shared.items() for name in names])
    _retire(tag, shared)


def _retire(tag: str, numbers: "Sequence[int] | set[int] | Mapping[int, object]") -> None:
    """Takes the ordinals away from all readers in SQL."""
    databases.retried(databases.of(ReaderNumber), partial(_retire_once, tag, numbers))


def _retire_once(tag: str, numbers: "Sequence[int] | set[int] | Mapping[int, object]") -> None:
    """Gives each of the ordinals a row with a name that no reader has, and deletes all others."""
    retired = {f"{RETIRED}{number}": number for number in sorted(numbers)}
    new_rows = [ReaderNumber(tag=tag, name=name, number=number) for name, number in retired.items()]
    with databases.own_transaction(databases.of(ReaderNumber)):
        databases.rows(ReaderNumber).bulk_create(new_rows, ignore_conflicts=True)
        all_rows = databases.rows(ReaderNumber).filter(tag=tag, number__in=[*retired.values()])
        all_rows.exclude(name__in=[*retired]).delete()
