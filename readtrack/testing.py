"""For a site's own tests."""

from readtrack.store import keys, read_state, scanning
from readtrack.store.skips import skip_buffer


def clear() -> None:
    """Removes the keys of tests, which begin with `test:`. Where several processes run tests,
    each removes its own keys.

    Raises RuntimeError where these would be a live site's keys, and redis.RedisError.
    """
    if not keys.test_prefix():
        raise RuntimeError("This is for tests: set up Django's test environment first.")
    skip_buffer.clear()
    scanning.clear()
    read_state.begin(0)  # otherwise the first page would mark nothing read
