"""What files that the site names tell of an address: whether its network is doubtful, because
programs run there and seldom people's browsers, and in which country it is.

An address is looked up and forgotten: nothing keeps it, and no message has it.
"""

import json
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from importlib import import_module
from ipaddress import IPv4Network, IPv6Network
from itertools import islice
from os import fspath
from pathlib import Path
from socket import AF_INET, AF_INET6, inet_pton
from threading import Thread
from time import perf_counter
from typing import Any, NamedTuple

from readtrack.conf import cached_setting, logger, register_at_fork
from readtrack.hits import addresses
from readtrack.networks.options import networks_options

Network = IPv4Network | IPv6Network

OPERATOR = re.compile("AS([0-9]{1,10})", re.IGNORECASE)
LONGEST_LIST = 64_000_000  # bytes; the longest one that is published has some 5,000,000
# Seconds until a process looks again whether its files have changed.
AGE = 600.0
# How many addresses of IPv4 there are, and how many of IPv6 are given to networks (2000::/3).
IPV4_ADDRESSES = 2**32
IPV6_ADDRESSES = 2**125
MOST_DOUBTED = 0.25  # share of the addresses; the large clouds together have less than a tenth
RECORDS = 1_000  # of a database, by which it is known whether it has AS numbers and countries


class UnusableError(Exception):
    """An entry of NETWORKS cannot be used. The message is the reason."""


class Ranges(NamedTuple):
    """Ranges of addresses, as numbers. They are sorted, and do not overlap."""

    firsts: Sequence[int]
    lasts: Sequence[int]

    @classmethod
    def of(cls, networks: Iterable[Network]) -> "Ranges":
        """Returns the ranges of the networks, which are all of one version of IP."""
        firsts: list[int] = []
        lasts: list[int] = []
        # Numbers, because to compare networks takes ten times as long.
        for first, length in sorted(map(_first_and_length, networks)):
            last = first + length - 1
            if lasts and first <= lasts[-1] + 1:
                lasts[-1] = max(last, lasts[-1])
            else:
                firsts.append(first)
                lasts.append(last)
        return cls(firsts, lasts)

    @property
    def size(self) -> int:
        """The number of addresses in the ranges."""
        return sum(self.lasts) - sum(self.firsts) + len(self.firsts)

    def has(self, number: int) -> bool:
        """Returns True if the address is in one of the ranges."""
        index = bisect_right(self.firsts, number) - 1
        return index >= 0 and number <= self.lasts[index]


def _first_and_length(network: Network) -> tuple[int, int]:
    """Returns the first address as a number, and the number of addresses."""
    return int(network.network_address), network.num_addresses


class Loaded(NamedTuple):
    """What the files of NETWORKS say."""

    ipv4: Ranges  # of the doubtful networks
    ipv6: Ranges
    operators: Set[int]  # the numbers of the doubtful autonomous systems
    databases: Sequence[Any]  # readers of .mmdb files


NOTHING = Loaded(Ranges([], []), Ranges([], []), frozenset(), ())


class Files:
    """The files of NETWORKS, as this process has read them.

    A thread reads them, so that no page waits. Until it is done, no network is doubtful.
    """

    def __init__(self) -> None:
        self.loaded = NOTHING
        self._due = 0.0  # `time.perf_counter` of the next look at the files
        self._stamps: Mapping[str, Any] | None = None  # by path, of the files that are loaded

    def recent(self) -> Loaded:
        """Returns what the files said when they were read; has them read again if that is due."""
        now = perf_counter()
        if now >= self._due:
            self._due = now + AGE
            with suppress(RuntimeError):  # no thread can be started: the next look tries it again
                Thread(target=self.read, name="readtrack-networks", daemon=True).start()
        return self.loaded

    def read(self) -> None:
        """Reads the files, unless they are the same as before."""
        try:
            stamps = {path: _stamp(path) for path in _paths()}
            if stamps != self._stamps:
                self.loaded = _load()
                self._stamps = stamps
        except Exception:  # a thread has nobody to raise it to
            logger.exception("The files of NETWORKS cannot be read.")


@cached_setting()
def files() -> Files:
    """Returns the files of the present setting."""
    return Files()


# The thread of the parent does not run in the child.
register_at_fork(after_in_child=lambda: files.cache_clear())  # type: ignore[attr-defined]


def is_doubtful(meta: Mapping[str, Any]) -> bool:
    """Returns True if the request with these headers comes from a doubtful network."""
    options = networks_options()
    if not (options.databases or options.doubtful):
        return False
    client = addresses.network(*addresses.hops(meta))
    loaded = files().recent()
    return _is_in_ranges(client, loaded) or _is_of_operator(client, loaded)


def has_databases() -> bool:
    """Returns True if the site names databases, which may know countries."""
    return bool(networks_options().databases)


def country(client: str) -> str:
    """Returns the country of an address as two letters, "DE"; "" for an unknown one.

    `client` is as `addresses.network` returns it.
    """
    if not has_databases():
        return ""
    codes = (_country_in(record) for record in _records(client, files().recent()))
    return next(filter(None, codes), "")


def _is_in_ranges(client: str, loaded: Loaded) -> bool:
    if not client:
        return False
    if ":" in client:
        return loaded.ipv6.has(int.from_bytes(inet_pton(AF_INET6, client), "big"))
    return loaded.ipv4.has(int.from_bytes(inet_pton(AF_INET, client), "big"))


def _is_of_operator(client: str, loaded: Loaded) -> bool:
    if not loaded.operators:
        return False
    return any(_operator_in(record) in loaded.operators for record in _records(client, loaded))


def _records(client: str, loaded: Loaded) -> Iterator[Mapping[str, Any]]:
    """Yields what each database has about the address."""
    if not client:
        return
    for database in loaded.databases:
        try:
            if ":" in client and database.metadata().ip_version == 4:
                continue
            record = database.get(client)
        except Exception as error:  # a part of the file may be broken
            _log_broken(type(error).__name__)
            continue
        if isinstance(record, dict):
            yield record


@cached_setting()  # once for each type of error
def _log_broken(error_name: str) -> None:
    # Without the message of the error, which has the address.
    logger.error("A database of NETWORKS cannot be read: %s.", error_name)


def _operator_in(record: Mapping[str, Any]) -> int | None:
    """Returns the AS number of a database's record; None if it has none.

    It is a number in MaxMind's and DB-IP's files, and a text such as "AS16509" in IPinfo's.
    """
    number = record.get("autonomous_system_number", record.get("asn"))
    if isinstance(number, int):
        return number
    match = OPERATOR.fullmatch(number) if isinstance(number, str) else None
    return int(match[1]) if match else None


def _country_in(record: Mapping[str, Any]) -> str:
    """Returns the country of a database's record as two letters; "" if it has none.

    It is `country.iso_code` in MaxMind's and DB-IP's files, and `country_code` or `country` in
    others.
    """
    place = record.get("country")
    codes = [record.get("country_code"), place]
    if isinstance(place, dict):
        codes.append(place.get("iso_code"))
    for code in codes:
        if isinstance(code, str) and len(code) == 2 and code.isascii() and code.isalpha():
            return code.upper()
    return ""


def problems() -> list[tuple[str, str]]:
    """Returns the entries of NETWORKS that cannot be used, each with the reason.

    Reads the files, so the same setting may have other problems a moment later.
    """
    unusable: list[tuple[str, str]] = []
    has_operators = False
    for path in _databases():
        try:
            records = _first_records(_database(path))
        except UnusableError as error:
            unusable.append((path, str(error)))
            continue
        has_operators = has_operators or any(map(_operator_in, records))
        if not any(map(_operator_in, records)) and not any(map(_country_in, records)):
            unusable.append((path, "it has neither AS numbers nor countries"))
    for entry in _doubtful():
        if OPERATOR.fullmatch(entry):
            if not has_operators:
                unusable.append((entry, "no file of 'databases' has AS numbers"))
            continue
        try:
            _check_has_networks(entry)
        except UnusableError as error:
            unusable.append((entry, str(error)))
    return unusable


def doubted_shares() -> dict[str, float]:
    """Returns which share of the addresses of "IPv4" and "IPv6" is doubtful, where it is so large
    that most visitors are doubted.
    """
    networks: list[Network] = []
    for entry in _doubtful():
        with suppress(UnusableError):  # which `problems` has
            networks += [] if OPERATOR.fullmatch(entry) else _networks_of(entry)
    sizes = {
        "IPv4": _ranges_of(networks, version=4).size / IPV4_ADDRESSES,
        "IPv6": _ranges_of(networks, version=6).size / IPV6_ADDRESSES,
    }
    return {name: min(1.0, share) for name, share in sizes.items() if share > MOST_DOUBTED}


def _ranges_of(networks: Iterable[Network], *, version: int) -> Ranges:
    """Returns the ranges of those of the networks that have this version of IP."""
    return Ranges.of(network for network in networks if network.version == version)


def _check_has_networks(entry: str) -> None:
    """Raises UnusableError for an entry that is no network, and no list with networks."""
    next(iter(_networks_of(entry)))


def _first_records(database: Any) -> list[Mapping[str, Any]]:
    """Returns some records of a database. Raises UnusableError if it cannot be read."""
    try:
        return [record for _, record in islice(database, RECORDS) if isinstance(record, dict)]
    except Exception as error:
        raise UnusableError(f"it is broken ({type(error).__name__})") from error


def _databases() -> list[str]:
    """Returns the paths of databases that NETWORKS names, as text."""
    return [fspath(path) for path in networks_options().databases]


def _doubtful() -> list[str]:
    """Returns the doubtful networks of NETWORKS, paths as text."""
    return [fspath(entry) for entry in networks_options().doubtful]


def _paths() -> list[str]:
    """Returns the paths of the files that NETWORKS names."""
    lists = [
        entry for entry in _doubtful() if not OPERATOR.fullmatch(entry) and _network(entry) is None
    ]
    return [*_databases(), *lists]


def _stamp(path: str) -> Any:
    """Returns what changes when a file is replaced; None if it is missing."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _load() -> Loaded:
    """Reads all files. Those that cannot be used are left out and logged."""
    databases = []
    for path in _databases():
        try:
            databases.append(_database(path))
        except UnusableError as error:
            logger.error("NETWORKS: %s is left out: %s.", path, error)
    operators = set()
    networks: list[Network] = []
    for entry in _doubtful():
        match = OPERATOR.fullmatch(entry)
        if match:
            operators.add(int(match[1]))
            continue
        try:
            networks += _networks_of(entry)
        except UnusableError as error:
            logger.error("NETWORKS: %s is left out: %s.", entry, error)
    return Loaded(
        ipv4=_ranges_of(networks, version=4),
        ipv6=_ranges_of(networks, version=6),
        operators=operators,
        databases=databases,
    )


def _database(path: str) -> Any:
    """Returns a reader of the .mmdb file. Raises UnusableError.

    The system loads the parts of the file that are read, once for all processes.
    """
    if not Path(path).is_file():
        raise UnusableError("there is no such file")
    try:
        package = import_module("maxminddb")
    except ImportError as error:
        raise UnusableError("it needs pip install readtrack[networks]") from error
    try:
        return package.open_database(path)
    except Exception as error:
        raise UnusableError(
            f"it is no file of the format MMDB, or cannot be read ({error})"
        ) from error


def _networks_of(entry: str) -> list[Network]:
    """Returns the network that the entry is, or those of the list at that path, one at least.

    Raises UnusableError.
    """
    network = _network(entry)
    if network is not None:
        return [network]
    networks: list[Network] = []
    for text in set(_texts_in(_content(entry))):
        network = _network(text)
        if network is not None:
            networks.append(network)
    if not networks:
        raise UnusableError("it has no networks such as 203.0.113.0/24")
    return networks


def _network(text: str) -> Network | None:
    """Returns the network or address; None for any other text, and for the network of everybody."""
    try:
        network = addresses.network_with_households(text)
    except ValueError:
        return None
    return network if network.prefixlen else None


def _content(path: str) -> str:
    """Returns the text of a list. Raises UnusableError."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnusableError("it is a pipe or a device, and no file")
            # Not by its size, because the file may grow meanwhile.
            content = file.read(LONGEST_LIST + 1)
    except (OSError, ValueError) as error:
        raise UnusableError(f"it cannot be read ({type(error).__name__})") from error
    if len(content) > LONGEST_LIST:
        raise UnusableError(f"it is larger than {LONGEST_LIST:,} bytes")
    return content.decode("utf-8-sig", errors="replace")


def _open_at_once(path: str, flags: int) -> int:
    """Opens the file for `open`. By default a pipe would open only once somebody writes into it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _texts_in(content: str) -> Iterator[str]:
    """Yields the texts of a list that may be networks: those of JSON, or the start of each line.

    Operators publish JSON of many forms, lines with one network, and lines with more columns, such
    as geofeeds (RFC 8805). Raises UnusableError for JSON that cannot be read.
    """
    if content.lstrip().startswith(("{", "[")):
        yield from _texts_of_json(content)
        return
    for line in content.splitlines():
        first_column, *_ = re.split(r"[\s,;#]", line.strip(), maxsplit=1)
        yield first_column.strip('"')


def _texts_of_json(content: str) -> Iterator[str]:
    try:
        values = [json.loads(content)]
    except (ValueError, RecursionError) as error:
        raise UnusableError("it is no valid JSON") from error
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            values += value.values()
        elif isinstance(value, list):
            values += value
