"""The findings of the doctor: its judgements of measurements. Nothing here asks a server."""

import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import NamedTuple

from django.db import DataError, Error, IntegrityError, NotSupportedError

from readtrack import __version__, layouts, shipped
from readtrack.conf import conf
from readtrack.doctor.measurements import (
    Drift,
    Flushes,
    Locks,
    Memory,
    Outbox,
    Parts,
    Persistence,
    Pooler,
    ReadStateCopies,
    Role,
    Schedule,
    Shortage,
    Tables,
    Totals,
    Version,
)
from readtrack.doctor.wording import counted, duration, size
from readtrack.hits.addresses import NOTICES, Notice
from readtrack.lines import one_line
from readtrack.sql import runs
from readtrack.store import connection
from readtrack.store.flush_notes import LayoutError, NewerLayoutError

SLOW = 0.005  # seconds for a PING; above it a view costs more than the queries of most pages
CLOCKS_APART = timedelta(seconds=5)  # of two machines; NTP keeps them within a fraction of one
OLDEST_VERSION = (6, 2)
COPIED_WITHIN = timedelta(hours=3)  # by full flushes, which run once an hour
NEARLY_FULL = 0.9  # share of the limit of memory
EXAMPLES = 3  # keys or subjects that a message names
STATEMENT = 200  # characters that are shown of a statement
# What Redis says to SELECT: of a number too high, and in a cluster.
NO_DATABASE = re.compile("DB index|SELECT is not allowed in cluster mode", re.IGNORECASE)

NO_SCHEDULE = (
    "Are Celery's worker and beat running, with readtrack_schedule in CELERY_BEAT_SCHEDULE?"
    " Without Celery, let manage.py readtrack schedule run, or cron, with --once, each minute."
)


class Finding(NamedTuple):
    """One result of an examination."""

    level: str  # ok, note, warning or error
    message: str
    hint: str  # what to do; "" if all is well
    name: str = ""  # of the examination


def _ok(message: str) -> Finding:
    return _finding("ok", message, "")


def _note(message: str, hint: str) -> Finding:
    return _finding("note", message, hint)


def _warning(message: str, hint: str) -> Finding:
    return _finding("warning", message, hint)


def _error(message: str, hint: str) -> Finding:
    return _finding("error", message, hint)


def _finding(level: str, message: str, hint: str) -> Finding:
    # The text of an error or of a statement may hold what a visitor typed.
    return Finding(level, one_line(message), one_line(hint))


def of_ping(seconds: float) -> list[Finding]:
    """Judges how long pages wait for Redis."""
    message = f"A PING takes {seconds * 1000:.2f} ms."
    if seconds <= SLOW:
        return [_ok(message)]
    return [_warning(message, "Every page waits this long. Move Redis closer to the web servers.")]


def of_clocks(ahead: timedelta) -> list[Finding]:
    """Judges whether this machine and Redis have the same time."""
    if abs(ahead) <= CLOCKS_APART:
        return [_ok("This machine's clock agrees with Redis's.")]
    direction = "behind"
    if ahead > timedelta(0):
        direction = "ahead of"
    return [
        _warning(
            f"This machine's clock is {duration(abs(ahead))} {direction} Redis's.",
            "Let NTP set both. Views are dated by Redis's clock; charts end, and cookies age, by"
            " that of the machine.",
        )
    ]


def of_version(version: Version) -> list[Finding]:
    """Judges whether the server knows the commands that the scripts call."""
    if not version.number:
        return [
            _note(
                "The server does not tell its version.",
                "It has to be Redis 6.2 or newer, or Valkey.",
            )
        ]
    message = f"The server is {version.product} {version.number}."
    major_and_minor = tuple(int(part) for part in version.number.split(".")[:2])
    if major_and_minor < OLDEST_VERSION:
        return [_error(message, "Upgrade it to Redis 6.2 or newer, or to Valkey.")]
    return [_ok(message)]


def of_role(role: Role) -> list[Finding]:
    """Judges whether the server takes writes and holds all keys.

    Of a server of a cluster it also judges whether it has a replica, and whether it answers while
    another one is down.
    """
    if role.is_in_cluster and not role.is_reached_as_cluster:
        return [
            _error(
                "The server is part of a cluster.",
                f"Give CACHES['{conf.CACHE}'] the OPTIONS"
                f" {{'CONNECTION_FACTORY': '{shipped.CLUSTER_FACTORY}'}}: {shipped.NO_CLUSTER}.",
            )
        ]
    if role.is_replica:
        return [
            _error(
                "The server is a replica and takes no writes.",
                f"Point CACHES['{conf.CACHE}'] at the primary.",
            )
        ]
    message = f"The server is a primary with {counted(role.replicas, 'replica')}."
    if role.is_in_cluster and not role.replicas:
        return [
            _warning(message, "Give it one, or a crash silences its subjects until it is back.")
        ]
    if role.needs_full_coverage:
        return [
            _warning(
                f"{message} While another one is down, it refuses all commands.",
                "Set cluster-require-full-coverage to no on each server.",
            )
        ]
    return [_ok(message)]


def of_keys(layout: int) -> list[Finding]:
    """Judges whether this version knows the layout of the keys."""
    if not layout:
        return [_ok("No flush has noted the layout of the keys yet.")]
    if layout > layouts.KNOWN:
        return [_error(layouts.sentence("Redis has keys", layout), layouts.HINT)]
    return [_ok(f"The keys have layout {layout}, which this version knows.")]


def of_tables(tables: Tables) -> list[Finding]:
    """Judges whether the tables are those of this version."""
    if tables.layout > layouts.KNOWN:
        return [_error(layouts.sentence("SQL has tables", tables.layout), layouts.HINT)]
    if tables.newest_applied > tables.newest_known:
        return [
            _note(
                f"SQL has had the migration {tables.newest_applied} of a newer version. This is"
                f" readtrack {__version__}, which can work with it.",
                "That is right during a deploy. After it, upgrade readtrack here.",
            )
        ]
    if tables.newest_applied < tables.newest_known:
        return [
            _error(
                f"SQL lacks the migration {tables.newest_known} of this version.",
                "Run: manage.py migrate readtrack",
            )
        ]
    if tables.without_tables:
        return [
            _error(
                f"The database lacks tables of {', '.join(tables.without_tables)}, so nothing of"
                " them is stored.",
                "Run: manage.py migrate",
            )
        ]
    return [_ok(f"The tables have layout {tables.layout}, which this version knows.")]


def of_parts(parts: Parts) -> list[Finding]:
    """Judges whether SQL has tables of parts that the site has taken away."""
    findings = [
        _note(
            f"SQL has the tables of {name}, which is not in INSTALLED_APPS.",
            f"They are written no more. To remove them, put '{name}' into INSTALLED_APPS again,"
            f" run manage.py migrate {shipped.label_of(name)} zero, and take it out."
            " What it has in Redis goes by itself.",
        )
        for name in parts.left_over
    ]
    names = ", ".join(parts.installed) or "none, which is the core alone"
    return findings or [_ok(f"Parts: {names}.")]


def of_memory(memory: Memory) -> list[Finding]:
    """Judges whether Redis deletes counts when its memory is full."""
    if not memory.policy:
        return [_note("The server does not tell its maxmemory-policy.", "It has to be noeviction.")]
    if memory.policy.startswith("allkeys"):
        return [
            _error(
                f"maxmemory-policy is {memory.policy}: Redis may delete counts.",
                "Set maxmemory-policy to noeviction, and give caches a Redis of their own.",
            )
        ]
    if memory.policy != "noeviction":
        return [
            _warning(
                f"maxmemory-policy is {memory.policy}:"
                " Redis may delete the keys that mark repeated views.",
                "Set maxmemory-policy to noeviction."
                " Until then a reload may count as another view.",
            )
        ]
    if memory.limit and memory.used >= memory.limit:
        return [
            _error(
                f"Redis is full: it uses {size(memory.used)} of {size(memory.limit)} (maxmemory)."
                " Nothing is counted now.",
                "Raise maxmemory. What was counted before is stored by flushes all the same.",
            )
        ]
    if memory.limit and memory.used > memory.limit * NEARLY_FULL:
        return [
            _warning(
                f"Redis uses {size(memory.used)} of {size(memory.limit)} (maxmemory)."
                " Once that is full, nothing is counted.",
                "Raise maxmemory.",
            )
        ]
    return [_ok(f"maxmemory-policy is {memory.policy}.")]


def of_persistence(persistence: Persistence) -> list[Finding]:
    """Judges what is left after a restart of Redis."""
    findings = []
    if persistence.has_dump_failed:
        findings.append(_failed_write("dump (RDB)"))
    if persistence.has_log_failed:
        findings.append(_failed_write("write to the log (AOF)"))
    if persistence.has_log:
        findings.append(_ok("Redis logs every write (AOF)."))
    elif persistence.dump_rules:
        findings.append(_ok(f"Redis saves dumps (RDB, save {persistence.dump_rules})."))
    elif persistence.dump_rules is None:
        findings.append(
            _note(
                "Redis has no AOF, and does not tell whether it saves dumps (RDB).",
                "Turn on its AOF or RDB.",
            )
        )
    else:
        findings.append(
            _note(
                "Redis keeps nothing over a restart.",
                "If you did not choose that, turn on its AOF or RDB. Otherwise a restart loses the"
                " views and the reads since the last flush; flushes bring the others back from"
                " SQL.",
            )
        )
    return findings


def _failed_write(write: str) -> Finding:
    """Returns the finding for the last dump, or the last write to the log, which failed."""
    return _error(
        f"The last {write} of Redis failed.", "Look into the log of Redis: is the disk full?"
    )


def of_scripts(refused: str | None) -> list[Finding]:
    """Judges whether the Redis user may run the Lua scripts."""
    if refused is None:
        return [_ok("The Lua scripts load and run.")]
    return [
        _error(
            f"Redis refuses the Lua scripts: {refused}",
            "Nothing is counted without them."
            " Let the Redis user run EVAL, EVALSHA and the commands that the scripts call.",
        )
    ]


def of_shortage(shortage: Shortage) -> list[Finding]:
    """Judges whether pages find a free connection to Redis."""
    if not shortage.views:
        return [_ok("No view was lost in the last 24 hours for want of a connection to Redis.")]
    limits = f"max_connections is {shortage.of_pool} for each process"
    if shortage.of_server:
        limits += f", and the server's maxclients is {shortage.of_server:,}"
    return [
        _warning(
            f"In the last 24 hours {counted(shortage.views, 'view')} did not count,"
            f" because no connection to Redis was free in time: {limits}.",
            "Give each process as many connections as it has threads"
            f" (CACHES['{conf.CACHE}'], CONNECTION_POOL_KWARGS), and the server more than all"
            " processes take together. Or run fewer threads.",
        )
    ]


def of_addresses(notices: Mapping[Notice, int]) -> list[Finding]:
    """Judges by what web processes noticed whether new visitors share the address of a proxy."""
    if not notices:
        return [_ok("No sign in the last 24 hours that new visitors share a proxy's address.")]
    return [
        _warning(
            f"In the last 24 hours: {NOTICES[notice]}"
            " New visitors with the same browser look like one.",
            "Set READTRACK['PROXIES'] to the number of proxies that add to X-Forwarded-For,"
            " such as 2 for a CDN in front of nginx, and 0 without a proxy."
            " Let each of them send the header.",
        )
        for notice in notices
    ]


def of_flushes(flushes: Flushes) -> list[Finding]:
    """Judges when flushes ran, how they ended and how long they took."""
    if not flushes.has_record:
        return [_warning("No flush has run yet.", NO_SCHEDULE)]
    findings = []
    if flushes.last_error:
        findings.append(
            _error(
                f"The last flush failed: {flushes.last_error}",
                "Run manage.py readtrack flush, and see whether it fails again.",
            )
        )
    findings += [
        _error(
            f"Not stored: {line}",
            "All others are stored. The views wait in Redis until this is mended.",
        )
        for line in flushes.faults
    ]
    if flushes.age is None:
        findings.append(_error("No flush has succeeded yet.", NO_SCHEDULE))
        return findings
    message = f"The last successful flush began {duration(flushes.age)} ago."
    if flushes.age > runs.late_after():
        findings.append(_error(message, NO_SCHEDULE))
        return findings
    findings.append(_ok(message))
    interval = timedelta(seconds=conf.FLUSH_INTERVAL)
    if flushes.took and flushes.took > interval:
        findings.append(
            _warning(
                f"It took {duration(flushes.took)},"
                f" longer than the interval of {duration(interval)}.",
                "Flush less often, and set READTRACK['FLUSH_INTERVAL'] to the new interval.",
            )
        )
    return findings


def of_schedule(schedule: Schedule) -> list[Finding]:
    """Says what has to run flushes. Whether it does, `of_flushes` judges by those that ran."""
    if schedule.is_in_beat:
        return [
            _ok(
                "CELERY_BEAT_SCHEDULE has the tasks of readtrack, which Celery's beat and a worker"
                " have to run."
            )
        ]
    return [
        _ok(
            "CELERY_BEAT_SCHEDULE has no tasks of readtrack, so manage.py readtrack schedule, cron"
            " or a scheduler of the site has to run flushes."
        )
    ]


def of_outbox(outbox: Outbox) -> list[Finding]:
    """Judges whether publications reach Redis."""
    if not outbox.publications:
        return [_ok("Every publication has reached Redis.")]
    message = (
        f"{counted(outbox.publications, 'publication')} not sent to Redis yet,"
        f" the oldest for {duration(outbox.age)}."
    )
    if outbox.age > runs.late_after():
        return [
            _warning(
                f"{message} Their dots are off.",
                "Flushes send them. Run: manage.py readtrack flush",
            )
        ]
    return [_ok(f"{message} The next flush sends them.")]


def of_read_state(copies: ReadStateCopies) -> list[Finding]:
    """Judges whether Redis has its read state, and SQL a copy that is not old."""
    if copies.is_lost:
        return [
            _error(
                "Redis lost its read state: pages show no dots, and nothing is marked read.",
                "The next flush restores it from SQL. Run: manage.py readtrack flush",
            )
        ]
    if not copies.changed:
        return [_ok("SQL has a copy of all read state.")]
    message = (
        f"{counted(copies.changed, 'change')} of read state not copied to SQL yet,"
        f" the oldest for {duration(copies.age)}."
    )
    if copies.age > COPIED_WITHIN:
        return [
            _warning(
                f"{message} If Redis loses its data, what was read since then is unread again.",
                "Flushes copy it, the oldest changes first. Run: manage.py readtrack flush",
            )
        ]
    return [_ok(message)]


def of_locks(locks: Locks) -> list[Finding]:
    """Judges whether another transaction keeps flushes from writing rows."""
    if not locks.rows:
        return [_ok("The last flush found no row locked.")]
    message = (
        f"The last flush left {counted(locks.rows, 'row')} of which another transaction has a lock"
    )
    lock = locks.oldest
    if lock is None:
        return [_ok(f"{message}. The next flush writes them.")]
    return [
        _warning(
            f"{message}: session {lock.session}, open for {duration(lock.age)},"
            f" last statement: {lock.statement[:STATEMENT]}",
            f"Let it commit. If it hangs, end session {lock.session}:"
            f" pg_terminate_backend({lock.session}); MariaDB: KILL {lock.session}.",
        )
    ]


def of_pooler(pooler: Pooler) -> list[Finding]:
    """Judges whether all statements work behind a pooler that pools transactions."""
    if not pooler.databases:
        return [_ok("No pooler is between Django and the databases.")]
    message = f"A pooler is between Django and {', '.join(pooler.databases)}"
    if not pooler.with_cursors:
        return [_ok(f"{message}; cursors are closed at the end of each statement.")]
    return [
        _note(
            f"{message}; cursors on {', '.join(pooler.with_cursors)} outlive a transaction.",
            "If it pools transactions, as PgBouncer does with pool_mode = transaction, set"
            " 'DISABLE_SERVER_SIDE_CURSORS': True for them in DATABASES. Otherwise ignore this.",
        )
    ]


def of_totals(totals: Totals) -> list[Finding]:
    """Judges whether all totals are numbers, and of models that the site counts."""
    findings = []
    if totals.broken:
        findings.append(
            _error(
                f"Not a number in Redis: {counted(len(totals.broken), 'total')},"
                f" such as {_examples(totals.broken)}.",
                "Its views do not count, and pages show SQL's."
                " Delete the key in Redis: it then goes on from SQL's.",
            )
        )
    else:
        message = f"{counted(totals.count, 'total')} looked at, and all of them are numbers."
        findings.append(_ok(message))
    if totals.unknown:
        findings.append(
            _warning(
                f"Redis has totals of models that are not counted: {_examples(totals.unknown)}.",
                "If such a model was renamed or moved to another app, add"
                " readtrack.operations.FollowRename(old, new) to a migration. If it is gone for"
                f" good, delete the keys that match '*:{totals.unknown[0]}*'.",
            )
        )
    return findings


def of_drift(drift: Drift | None) -> list[Finding]:
    """Judges whether SQL agrees with Redis."""
    if drift is None:
        return [
            _note(
                "Redis and SQL cannot be compared, because no flush succeeded in the last hour.",
                "Run: manage.py readtrack flush",
            )
        ]
    message = f"{counted(drift.compared, 'total')} compared with SQL"
    if not drift.different:
        return [_ok(f"{message}, none different.")]
    return [
        _warning(
            f"{message}, {len(drift.different):,} different, such as {_examples(drift.different)}.",
            "Run: manage.py readtrack flush",
        )
    ]


def _examples(keys_or_subjects: Collection[str]) -> str:
    """Returns the first EXAMPLES of the keys or subjects as text."""
    return ", ".join(list(keys_or_subjects)[:EXAMPLES])


def failure(error: connection.RedisError | Error) -> Finding:
    """Returns the finding for a server that does not answer, refuses to answer or is not set up."""
    text = str(error).strip()
    error_name = type(error).__name__
    if isinstance(error, LayoutError):
        return _error(
            text,
            "Until then flushes store nothing. Move keys once no process has the old number any"
            " more.",
        )
    if isinstance(error, NewerLayoutError):
        return _error(text, layouts.HINT)
    if isinstance(error, connection.UnusableError):
        return _error(
            f"CACHES['{conf.CACHE}'] names no Redis: {text}",
            "It has to be of django-redis, with a LOCATION such as redis://127.0.0.1:6379/0."
            " Run: manage.py check",
        )
    if isinstance(error, connection.AuthenticationError):
        return _error(
            f"Redis failed: {error_name}: {text}",
            f"Correct the user or the password in CACHES['{conf.CACHE}'].",
        )
    if isinstance(error, connection.RedisError):
        return _error(
            f"Redis failed: {error_name}: {text}",
            f"CACHES['{conf.CACHE}'] points at {connection.address()}."
            " Is Redis running there, and can this machine reach it?",
        )
    if isinstance(error, (DataError, IntegrityError, NotSupportedError)):
        return _error(
            f"The database refused a value or a statement: {error_name}: {text}",
            "It answers, so it is running. Look for the value that it names.",
        )
    return _error(
        f"The database failed: {text}",
        "Is it running, and does DATABASES point at it?"
        " If a table is missing, run: manage.py migrate",
    )


def names_no_database(error: connection.ResponseError) -> bool:
    """Returns True if the server has no database of the number in LOCATION."""
    return NO_DATABASE.search(str(error)) is not None


def refusal(error: connection.ResponseError) -> Finding:
    """Returns the finding for an examination whose commands the Redis user may not run."""
    if names_no_database(error):
        return _error(
            f"Redis has no database of that number, so nothing is counted: {error}",
            f"Correct the number at the end of LOCATION in CACHES['{conf.CACHE}']: usually it is"
            " 0 to 15, and in a cluster 0. Or raise `databases` in redis.conf.",
        )
    return _note(f"Not examined: {error}", "Let the Redis user run it, or look at it yourself.")
