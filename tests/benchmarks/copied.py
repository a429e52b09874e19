"""Views of many posts without a request for each: Redis copies what it has of a post that was viewed.

It is as if the visitors of that post had opened each of the others, too.
"""

from collections.abc import Iterator
from typing import Any

from readtrack.store import keys
from readtrack.store.connection import connect

MODEL = "site.post"
AT_ONCE = 10_000  # posts in a call of a script
# KEYS: a key, as it is named without the post's id, and with it. ARGV: the first and the last id of
# those that get a copy.
COPY_KEY = """
for id = ARGV[1], ARGV[2] do
    redis.call('COPY', KEYS[2], KEYS[1] .. string.format('%d', id))
end
"""
# KEYS: a sorted set. ARGV: the first and the last id; a member without the post's id; its score.
COPY_MEMBER = """
for id = ARGV[1], ARGV[2] do
    redis.call('ZADD', KEYS[1], ARGV[4], ARGV[3] .. string.format('%d', id))
end
"""


def copy_views(pk: int, *, first: int, last: int) -> None:
    """Gives what Redis has of that post, the only one that was viewed, to the posts first to last."""
    client: Any = connect(patient=True)
    ending = f"{MODEL}:{pk}"
    posts = last - first + 1
    for name in [name.decode() for name in client.scan_iter(count=1_000)]:
        row, pieces = keys.parse(name)
        assert row is not None, name
        if pieces.get("subject") == ending:
            for ids in _portions(first, last):
                client.eval(COPY_KEY, 2, name.removesuffix(str(pk)), name, *ids)
        elif "model" in pieces and row.type == "string":
            client.incrby(name, int(client.get(name)) * posts)
        elif row.type == "sorted set":
            for member, score in client.zrange(name, 0, -1, withscores=True):
                if member.decode().endswith(ending):
                    beginning = member.decode().removesuffix(str(pk))
                    for ids in _portions(first, last):
                        client.eval(COPY_MEMBER, 1, name, *ids, beginning, repr(score))


def _portions(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yields the first and the last id of each call."""
    for start in range(first, last + 1, AT_ONCE):
        yield start, min(start + AT_ONCE - 1, last)
