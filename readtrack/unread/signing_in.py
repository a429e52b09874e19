"""Signing in: what a visitor has read without an account becomes read for the account."""

from collections.abc import Iterator, Sequence

from readtrack import subjects
from readtrack.hits.readers import Reader
from readtrack.sql import databases
from readtrack.store import keys, read_state, scripts
from readtrack.store.circuit import has_little_time

# Rows of each model that are looked at, the newest ones. With more, a sign-in would take long.
MOST_ROWS = 10_000


def take_over(anonymous: Reader, user: Reader) -> int:
    """Marks what the anonymous reader has read as read for the user, and forgets the anonymous
    reader.

    Returns the number of categories that were taken over. It looks at the newest MOST_ROWS rows of
    each model, and at no more once the page has waited for Redis for half of TIMEOUT. Raises
    redis.RedisError.
    """
    # First, so that after a failure nothing is taken over by the next account in this browser.
    numbers_by_tag = _forget(anonymous)
    if not numbers_by_tag:
        return 0
    scripts.run_all(*read_state.number([user]))
    count = 0
    for portion in _portions_of_categories():
        if has_little_time():
            break
        number = numbers_by_tag.get(keys.tag(portion[0]))
        if number is not None:
            form = read_state.form_of(portion[0])
            count += scripts.run(form.take_over(portion, number=number, user=user))
    return count


def _forget(anonymous: Reader) -> dict[str, int]:
    """Forgets the anonymous reader. Returns its former numbers by the tag of the partition."""
    numbers = scripts.run_all(*read_state.forget(anonymous))
    pairs = zip(keys.tags(), numbers, strict=True)
    return {tag: number for tag, number in pairs if number is not None}


def _portions_of_categories() -> Iterator[Sequence[str]]:
    """Yields the subjects of the newest categories of each model, in portions that one call can
    take.
    """
    for model in subjects.read_state_models():
        # Read state that is kept by reader is none of anonymous readers.
        if not read_state.form_of(subjects.label_of(model)).knows_readers:
            continue
        pks = databases.rows(model).order_by("-pk").values_list("pk", flat=True)[:MOST_ROWS]
        yield from scripts.parted([subjects.subject_of_row(model, pk) for pk in pks])
