"""What a site's own tests can use."""

from readtrack.store import keys, read_state, scanning
from readtrack.store.skips import skip_buffer


def clear() -> None:
    """Removes the keys that tests have made in Redis, which begin with `test:`. If several
    processes run tests, each process removes its own keys.

    Raises RuntimeError outside tests, where the keys would be those of a live site, and
    redis.RedisError.
    """
    if not keys.test_prefix():
        raise RuntimeError("This is for tests: set up Django's test environment first.")
    skip_buffer.clear()
    scanning.clear()
    # Otherwise Redis would count as emptied, and the first page would mark nothing as read.
    read_state.begin(0)
