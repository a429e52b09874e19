"""Positions: read state by reader, for threads by the million.

Each reader has one hash in each partition for each model. It has the times (by Redis's clock) up to
which the reader has read threads, and watermarks: for all threads, and for those of one board. A
thread has the times of its last publications. It is unread if one of them is as late as the latest
of the reader's times.

So marking and publishing are one small write, whatever the number of readers or threads, and what
is published while a page is made is later by itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.store import keys as store_keys
from readtrack.store import scripts
from readtrack.store.channel import channel
from readtrack.store.read_state import ordinals
from readtrack.store.read_state.forms import (
    ROWS,
    Form,
    PageTime,
    Publication,
    counted,
    marked,
    published_at,
    times_of,
)
from readtrack.store.scripts import Call
from readtrack.subjects import key_in, label_in, model_with_label
from readtrack.threads import keys
from readtrack.threads.options import threads_options
from readtrack.threads.paths import board_paths, thread_labels

MOST_PUBLICATIONS = 100  # of a thread; "99+" is the highest number that pages show
# Of a reader in a partition. A hash with more than 512 fields takes ten times as much memory.
MOST_POSITIONS = 500
MOST_THREADS = 100  # in the list of a board
LAST_BOARD = 100  # the highest number of a board, which stands in the place of a time
NOWHERE = "@-"  # the name of no board, so that it is known when a thread comes into one
ALL = "*"  # the position for all threads
UNKNOWN = "at "  # begins a publication that names no post
BOARD = (
    "@"  # begins the position for the threads of a board. No key of a thread has such characters
)


class NewsOfReader(NamedTuple):
    """What is new to a reader in a thread."""

    position: int  # time (µs) up to which the thread is read; 0 if the reader has read nothing
    is_cut: bool  # there may be earlier publications that are new, too
    posts: tuple[str, ...]  # subjects of new posts, the earliest first; other texts if unknown

    @property
    def has_unknown(self) -> bool:
        """Returns True if posts may be new that are not named."""
        return self.is_cut or any(post.startswith(UNKNOWN) for post in self.posts)


class Positions(Form):
    """Knows how many publications are new, up to 100. For the threads of one model."""

    name = "positions"
    has_numbers = True
    most_counted = MOST_PUBLICATIONS - 1
    keeps_posts = True
    knows_readers = False
    is_by_reader = True
    by_id = keys.thread_news
    by_ordinal = keys.thread_news

    def __init__(self, label: str) -> None:
        """Takes the label of the threads' model."""
        self.label = label

    @property
    def rows(self) -> tuple[store_keys.Key, ...]:
        return (keys.thread_news,)

    @property
    def bits(self) -> int:
        return 0  # a category takes no memory for a reader

    def unread(self, reader: Reader, subjects: Sequence[str]) -> Call[dict[str, int]]:
        tag = store_keys.tag(subjects[0])
        prefix = store_keys.prefix()
        template = keys.thread_news.template
        key_names = self.first_keys(reader, tag)
        key_names += [prefix + template % (tag, subject) for subject in subjects]
        arguments: list[str | int] = [kept_for(), _can_have(reader), *map(key_in, subjects)]
        decode = partial(counted, subjects)
        return Call("readtrack.threads/unread_positions", key_names, arguments, decode, absent={})

    def mark(
        self, reader: Reader, subjects: Sequence[str], *, page: PageTime, absent: Any = ...
    ) -> Call[tuple[str, ...]]:
        tag = store_keys.tag(subjects[0])
        began, *own_keys = self.first_keys(reader, tag)
        key_names = [began, store_keys.reads_changed(tag), *own_keys]
        key_names += [keys.thread_news(subject) for subject in subjects]
        arguments = (
            kept_for(),
            _can_have(reader),
            page.age,
            page.began,
            lifetime(),
            MOST_POSITIONS,
            *map(key_in, subjects),
        )
        return Call(
            "readtrack.threads/mark_read_positions",
            key_names,
            arguments,
            partial(marked, subjects),
            absent,
        )

    def publish(self, publications: Sequence[Publication]) -> Call[int]:
        tag = store_keys.tag(publications[0].subject)
        key_names = [
            store_keys.reads_began(tag),
            store_keys.reads_changed(tag),
            keys.positions_start(tag, self.label),
        ]
        keys_per_thread = 3 + len(ROWS)
        arguments: list[str | int] = [
            kept_for(),
            len(publications),
            keys_per_thread,
            lifetime(),
            store_keys.sent.ttl,
            MOST_PUBLICATIONS,
            MOST_POSITIONS,
            self.board_prefix(tag),
            MOST_THREADS,
            channel(),
        ]
        for publication in publications:
            subject = publication.subject
            author = publication.author
            boards = self._names_of(publication.within)
            key_names += [keys.thread_news(subject), store_keys.sent(subject)]
            key_names.append(self.positions_key("" if author is None else author, tag))
            # Read state of an earlier form would be out of date if the site went back to that form.
            key_names += [row(subject) for row in ROWS]
            arguments += [
                key_in(subject),
                store_keys.published(subject),
                publication.post,
                publication.items,
                publication.token,
                int(author is not None),
                int(publication.is_own),
                len(boards),
                *boards,
            ]
        return Call("readtrack.threads/publish_positions", key_names, arguments, _published_at)

    def last_published(self, subjects: Sequence[str]) -> Call[dict[str, int]]:
        key_names = [keys.thread_news(subject) for subject in subjects]
        return Call(
            "readtrack.threads/last_news",
            key_names,
            (LAST_BOARD,),
            partial(times_of, subjects),
            absent={},
        )

    def unpublish(self, subjects: Sequence[str], *, post: str, token_start: str) -> list[Call[int]]:
        return [Call("ZREM", [keys.thread_news(subject)], (post,), int) for subject in subjects]

    def mark_all_for_everybody(self, *, as_of: int) -> list[Call[Any]]:
        """Returns calls that mark all threads read for everybody up to that time (µs), in order."""
        calls: list[Call[Any]] = []
        for tag in store_keys.tags():
            name = keys.positions_start(tag, self.label)
            calls.append(Call("SET", [name], (as_of, "EX", lifetime()), bool))
            calls.append(Call("ZADD", [store_keys.reads_changed(tag)], (as_of, name), int))
        return calls

    def mark_all(
        self, reader: Reader, *, page: PageTime, within: str = "", absent: Any = ...
    ) -> list[Call[int]]:
        """Returns calls that mark all threads read for the reader, or those of one board.

        There is one call for each partition. A result is 0 for a time in the future, and for a
        Redis that has not begun.
        """
        if not _can_have(reader):
            return []
        field = board_name(within) if within else ALL
        arguments = (kept_for(), page.age, page.began, lifetime(), MOST_POSITIONS, field)
        calls = []
        for tag in store_keys.tags():
            key_names = [
                store_keys.reads_began(tag),
                store_keys.reads_changed(tag),
                self.positions_key(reader, tag),
            ]
            if within:
                key_names.append(keys.board_news(tag, self.label, within))
            calls.append(
                Call("readtrack.threads/mark_all_positions", key_names, arguments, int, absent)
            )
        return calls

    def check_within(self, subject: str) -> None:
        board_label = label_in(subject)
        if self.label not in thread_labels().get(board_label, []):
            raise TypeError(f"{self.label} names no boards of {board_label}.")

    def raise_positions(self, reader: Reader, times: Mapping[str, int]) -> list[Call[int]]:
        """Returns calls that raise positions of the reader, which never fall.

        `times` has times (µs) by the subject of the thread.
        """
        calls = []
        for portion in scripts.parted([*times]):
            fields = {key_in(subject): times[subject] for subject in portion}
            tag = store_keys.tag(portion[0])
            calls.append(raised(self.positions_key(reader, tag), fields, tag=tag))
        return calls

    def raise_all(self, reader: Reader, time: int) -> list[Call[int]]:
        """Returns calls that raise the reader's position for all threads to that time (µs)."""
        return [
            raised(self.positions_key(reader, tag), {ALL: time}, tag=tag)
            for tag in store_keys.tags()
        ]

    def enter(self, subject: str, *, published: int, now: int) -> list[Call[int]]:
        """Returns calls that enter a thread whose last post is of that time (µs), in this order.

        The post is not known. A time in the future is taken for `now`, or nobody could read the
        thread before that time. To enter it again changes nothing.
        """
        news = keys.thread_news(subject)
        member = f"{UNKNOWN}{published} 1"
        return [
            Call("ZADD", [news], ("NX", min(published, now), member)),
            Call("EXPIRE", [news], (lifetime(),)),
        ]

    def news_of(self, reader: Reader, subject: str) -> Call[NewsOfReader]:
        """Reads what is new to the reader in a thread."""
        tag = store_keys.tag(subject)
        key_names = [*self.first_keys(reader, tag), keys.thread_news(subject)]
        arguments = (kept_for(), key_in(subject), MOST_PUBLICATIONS)
        return Call("readtrack.threads/unread_news", key_names, arguments, _news)

    def place(self, subject: str, boards: Sequence[str]) -> Call[int]:
        """Places a thread in its boards, by their subjects, after it was moved to another one."""
        arguments: list[str | int] = [
            kept_for(),
            lifetime(),
            self.board_prefix(store_keys.tag(subject)),
            MOST_THREADS,
            key_in(subject),
            *self._names_of(boards),
        ]
        key_names = [store_keys.reads_changed(store_keys.tag(subject)), keys.thread_news(subject)]
        return Call("readtrack.threads/place_thread", key_names, arguments, int)

    def first_keys(self, reader: Reader, tag: str) -> list[str]:
        """Returns the keys that each script needs which reads for a reader: when the Redis of the
        partition began, when everybody has read all, and the positions of the reader.
        """
        return [
            store_keys.reads_began(tag),
            keys.positions_start(tag, self.label),
            self.positions_key(reader, tag),
        ]

    def positions_key(self, reader: Reader, tag: str) -> str:
        """Returns the key of the reader's positions in the partition `tag`."""
        return keys.positions(tag, self.label, ordinals.field(reader))

    def _names_of(self, boards: Sequence[str]) -> list[str]:
        """Returns the names of the boards that a thread is in, by their subjects; NOWHERE for a
        thread that is in none, of a model whose rows can be in boards.
        """
        names = [*map(board_name, boards)]
        model = None if names else model_with_label(self.label)
        if model is not None and board_paths(model):
            return [NOWHERE]
        return names

    def board_prefix(self, tag: str) -> str:
        """Returns what the keys of the lists of boards begin with."""
        return keys.board_news(tag, self.label, "")


class BoardPositions(Form):
    """Tells if a thread in a board is unread. For the boards of one model.

    The threads themselves have positions. Each partition has its own list of a board's threads.
    """

    name = "boards"
    knows_readers = False
    is_derived = True
    by_id = keys.thread_news  # of its threads
    by_ordinal = keys.thread_news

    def __init__(self, threads: Sequence[Positions]) -> None:
        """Takes the forms of the models whose rows are in the boards."""
        self.threads = threads

    @property
    def rows(self) -> tuple[store_keys.Key, ...]:
        return ()

    @property
    def bits(self) -> int:
        return 0

    def unread_calls(self, reader: Reader, subjects: Sequence[str]) -> list[Call[dict[str, int]]]:
        return [
            self._unread_in(threads, tag, reader, portion)
            for threads in self.threads
            for tag in store_keys.tags()
            for portion in scripts.sliced(subjects)
        ]

    def _unread_in(
        self, threads: Positions, tag: str, reader: Reader, subjects: Sequence[str]
    ) -> Call[dict[str, int]]:
        """Reads what is unread of the threads of one model in one partition."""
        label = threads.label
        key_names = threads.first_keys(reader, tag)
        key_names += [keys.board_news(tag, label, subject) for subject in subjects]
        news_prefix = keys.thread_news.start(tag) + f"{label}:"
        arguments: list[str | int] = [kept_for(), _can_have(reader), news_prefix]
        arguments += map(board_name, subjects)
        decode = partial(counted, subjects)
        return Call("readtrack.threads/unread_boards", key_names, arguments, decode, absent={})

    def mark_calls(
        self, reader: Reader, subjects: Sequence[str], *, page: PageTime, absent: Any = ...
    ) -> list[Call[tuple[str, ...]]]:
        calls: list[Call[Any]] = []
        for subject in subjects:
            calls_of_board: list[Call[Any]] = []
            for threads in self.threads:
                calls_of_board += threads.mark_all(reader, page=page, within=subject, absent=absent)
            for number, call in enumerate(calls_of_board):
                # One of them names the board, which is to be named once.
                call.decode = partial(_marked_board, subject if number == 0 else "")
            calls += calls_of_board
        return calls

    def raise_positions(self, reader: Reader, times: Mapping[str, int]) -> list[Call[int]]:
        """Returns calls that raise positions of the reader for the threads of boards.

        `times` has times (µs) by the subject of the board.
        """
        names = {board_name(subject): time for subject, time in times.items()}
        return [
            raised(threads.positions_key(reader, tag), names, tag=tag)
            for threads in self.threads
            for tag in store_keys.tags()
        ]

    def publish(self, publications: Sequence[Publication]) -> Call[int]:
        """Publishes nothing, because only threads are. The result is Redis's time."""
        began = store_keys.reads_began(store_keys.tag(publications[0].subject))
        return Call("GET", [began], (), lambda time: int(time or 0))


def board_name(subject: str) -> str:
    """Returns the name of a board among the positions of a reader, and in its threads."""
    return BOARD + subject


def kept_for() -> int:
    """Returns how long a publication can be unread (µs)."""
    return threads_options().days * store_keys.DAY * 1_000_000


def lifetime() -> int:
    """Returns the lifetime of all keys of this form (seconds).

    A position that is older says nothing that the `days` of THREADS do not say.
    """
    return max(1, threads_options().days * store_keys.DAY)


def raised(key_name: str, times: Mapping[str, int], *, tag: str) -> Call[int]:
    """Returns the call that raises positions in one hash, by their names in it.

    `tag` is that of the hash's partition.
    """
    arguments: list[str | int] = [lifetime(), MOST_POSITIONS]
    for name, time in times.items():
        arguments += [name, time]
    return Call(
        "readtrack.threads/raise_positions",
        [store_keys.reads_changed(tag), key_name],
        arguments,
        int,
    )


def tags_of(label: str, names: Iterable[str]) -> dict[str, list[str]]:
    """Returns the names of positions by the tags of the partitions that they belong to.

    A thread belongs to one partition. The position of a board, and that of all threads, belongs to
    each.
    """
    names_by_tag: dict[str, list[str]] = {tag: [] for tag in store_keys.tags()}
    for name in names:
        is_of_all = name == ALL or name.startswith(BOARD)
        tags = store_keys.tags() if is_of_all else [store_keys.tag(f"{label}:{name}")]
        for tag in tags:
            names_by_tag[tag].append(name)
    return {tag: names_of_tag for tag, names_of_tag in names_by_tag.items() if names_of_tag}


def _can_have(reader: Reader) -> int:
    """Returns 1 for a user; 0 for an anonymous reader.

    The memory of positions grows with the number of readers, and anybody can come as many of them.
    """
    is_anonymous = isinstance(reader, str) and reader.startswith(readers.ANONYMOUS)
    return int(not is_anonymous)


def _marked_board(subject: str, answer: Any) -> tuple[str, ...]:
    """Returns the board in a tuple if the script marked it; none for the subject ""."""
    return (subject,) if subject and int(answer) else ()


def _published_at(answer: Sequence[Any]) -> int:
    """Returns when something was published, like `published_at`. It may be long ago."""
    last_sent, redis_time = answer
    published_at(redis_time)
    return int(last_sent)


def _news(answer: Sequence[Any] | None) -> NewsOfReader:
    """Returns what the script unread_news.lua answers. A Redis that has not begun answers
    nothing.
    """
    if answer is None:
        return NewsOfReader(0, is_cut=False, posts=())
    position, is_cut, *posts = answer
    return NewsOfReader(int(position), bool(is_cut), tuple(scripts.names(posts)))
