"""NETWORKS: which addresses are doubtful, and their countries, by files that the site names."""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from random import Random
from socket import AF_UNIX, inet_aton, socket
from threading import Thread
from threading import enumerate as threads
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st
from mmdb_writer import MMDBWriter
from netaddr import IPSet
from pytest_django import Settings
from redis import Redis

from readtrack import reports
from readtrack.checks.setup import check_setup
from readtrack.flush.run import flush
from readtrack.hits import addresses
from readtrack.networks import lookup
from readtrack.networks.lookup import Ranges
from readtrack.numbers import dimensions
from tests.checks.findings import found, the_message
from tests.support import factories
from tests.support.waiting import comes_true

# As the operators publish them, shortened.
AWS = {
    "syncToken": "1764115987",
    "createDate": "2025-11-26-00-13-07",
    "prefixes": [
        {
            "ip_prefix": "3.4.12.4/32",
            "region": "eu-west-1",
            "service": "AMAZON",
            "network_border_group": "eu-west-1",
        },
        {
            "ip_prefix": "13.34.37.64/27",
            "region": "ap-southeast-4",
            "service": "EC2",
            "network_border_group": "ap-southeast-4",
        },
    ],
    "ipv6_prefixes": [
        {
            "ipv6_prefix": "2600:1f69:7400::/40",
            "region": "mx-central-1",
            "service": "AMAZON",
            "network_border_group": "mx-central-1",
        }
    ],
}
GOOGLE = {
    "syncToken": "1764100000000",
    "creationTime": "2025-11-25T19:46:40.000000",
    "prefixes": [
        {"ipv4Prefix": "34.1.208.0/20", "service": "Google Cloud", "scope": "africa-south1"},
        {"ipv6Prefix": "2600:1900:8000::/44", "service": "Google Cloud", "scope": "africa-south1"},
    ],
}
AZURE = {
    "changeNumber": 382,
    "cloud": "Public",
    "values": [
        {
            "name": "ActionGroup",
            "id": "ActionGroup",
            "properties": {
                "changeNumber": 45,
                "region": "",
                "regionId": 0,
                "platform": "Azure",
                "systemService": "ActionGroup",
                "addressPrefixes": ["4.145.74.52/30", "2603:1000:4:402::178/125"],
                "networkFeatures": ["API", "NSG", "UDR", "FW"],
            },
        }
    ],
}
ORACLE = {
    "last_updated_timestamp": "2025-11-24T16:10:11.523310",
    "regions": [
        {"region": "us-phoenix-1", "cidrs": [{"cidr": "129.146.0.0/21", "tags": ["OCI"]}]},
    ],
}
PLAIN = """# hosts of the operator
198.51.100.0/24
203.0.113.7   # a single one

2001:db8:5::/48
"""
# RFC 8805, as DigitalOcean and Linode have it.
GEOFEED = (
    "198.51.100.0/25,NL,NL-NH,Amsterdam,1105 AT\n2001:db8:6::/48,US,US-NJ,North Bergen,07047\n"
)

MakeFile = Callable[[str], str]


def write_database(path: Path, records: Mapping[str, Any], *, ip_version: int = 6) -> str:
    """Writes an .mmdb file with records by network. Returns its path."""
    writer = MMDBWriter(ip_version=ip_version, ipv4_compatible=ip_version == 6)
    for network, record in records.items():
        writer.insert_network(IPSet([network]), record)
    writer.to_db_file(str(path))
    return str(path)


@pytest.fixture
def file_with(tmp_path: Path) -> MakeFile:
    """Returns a function that writes a file with that content, and returns its path."""

    def write(content: str) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.list"
        path.write_text(content)
        return str(path)

    return write


@pytest.fixture
def operators(tmp_path: Path) -> str:
    """The path of an .mmdb file with AS numbers, as MaxMind and DB-IP write them."""
    records = {
        "198.51.100.0/24": {
            "autonomous_system_number": 16509,
            "autonomous_system_organization": "AMAZON-02",
        },
        "192.0.2.0/24": {"autonomous_system_number": 3320},
        "2001:db8:7::/48": {"autonomous_system_number": 16509},
    }
    return write_database(tmp_path / "as.mmdb", records)


def doubtful(
    settings: Settings, entries: Sequence[Any], *clients: str, databases: Sequence[Any] = ()
) -> list[bool]:
    """Returns whether each client is doubtful, once the files are read."""
    settings.READTRACK = {"NETWORKS": {"doubtful": entries, "databases": databases}}
    lookup.files().read()
    return [lookup.is_doubtful({"REMOTE_ADDR": client}) for client in clients]


@pytest.mark.parametrize(
    ("published", "inside", "outside"),
    [
        (
            json.dumps(AWS),
            ["3.4.12.4", "13.34.37.95", "2600:1f69:74ff::1"],
            ["3.4.12.5", "13.34.37.96"],
        ),
        (
            json.dumps(GOOGLE, indent=2),
            ["34.1.208.0", "34.1.223.255", "2600:1900:800f::"],
            ["34.1.224.0"],
        ),
        (
            json.dumps(AZURE),
            ["4.145.74.55", "2603:1000:4:402::1"],
            ["4.145.74.56", "2603:1000:4:403::"],
        ),
        (json.dumps(ORACLE), ["129.146.7.255"], ["129.146.8.0"]),
        (PLAIN, ["198.51.100.9", "203.0.113.7", "2001:db8:5:1::"], ["203.0.113.8", "2001:db8:6::"]),
        (GEOFEED, ["198.51.100.127", "2001:db8:6::1"], ["198.51.100.128", "1105"]),
        ("\ufeff198.51.100.0/24\r\n", ["198.51.100.1"], ["198.51.101.1"]),
        ('["198.51.100.0/24"]', ["198.51.100.1"], ["198.51.101.1"]),
    ],
)
def test_lists_are_read_as_operators_publish_them(
    settings: Settings, file_with: MakeFile, published: str, inside: list[str], outside: list[str]
) -> None:
    path = file_with(published)
    assert all(doubtful(settings, [path], *inside))
    assert not any(doubtful(settings, [path], *outside, "", "nonsense", "127.0.0.1"))
    assert found() == []


def test_a_network_and_an_as_number_need_no_list(settings: Settings, operators: str) -> None:
    clients = ["198.51.100.1", "192.0.2.1", "2001:db8:7::1", "203.0.113.9", "2001:db8:8::"]
    entries = ["as16509", "203.0.113.0/24"]
    answers = doubtful(settings, entries, *clients, databases=[Path(operators)])
    assert answers == [True, False, True, True, False]
    assert found() == []


def test_an_as_number_may_be_a_text(settings: Settings, tmp_path: Path) -> None:
    records = {
        "198.51.100.0/24": {"asn": "AS15169", "country_code": "US"},
        "192.0.2.0/24": {"asn": "?"},
    }
    path = write_database(tmp_path / "lite.mmdb", records)
    answers = doubtful(settings, ["AS15169"], "198.51.100.1", "192.0.2.1", databases=[path])
    assert answers == [True, False]


def test_a_client_behind_a_proxy_is_meant(settings: Settings) -> None:
    doubtful(settings, ["198.51.100.0/24"])
    meta = {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "198.51.100.9"}
    assert lookup.is_doubtful(meta)
    assert not lookup.is_doubtful({**meta, "HTTP_X_FORWARDED_FOR": "203.0.113.9"})


@given(
    st.lists(st.tuples(st.integers(0, 2**10 - 1), st.integers(22, 32)), max_size=30),
    st.integers(0, 2**10 - 1),
)
def test_ranges_have_what_one_of_the_networks_has(texts: list[tuple[int, int]], low: int) -> None:
    base = int(ip_address("10.0.0.0"))
    parsed = [ip_network((base + start, length), strict=False) for start, length in texts]
    address = ip_address(base + low)
    ranges = Ranges.of(parsed)
    assert ranges.has(int(address)) is any(address in network for network in parsed)
    assert list(ranges.firsts) == sorted(ranges.firsts)


def test_a_site_without_the_setting_looks_nothing_up(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.READTRACK = {}
    monkeypatch.setattr(addresses, "hops", None)
    monkeypatch.setattr(lookup, "files", None)
    assert lookup.is_doubtful({"REMOTE_ADDR": "198.51.100.1"}) is False
    assert lookup.country("198.51.100.1") == ""
    assert lookup.problems() == []


def test_a_page_does_not_wait_for_the_files(settings: Settings, file_with: MakeFile) -> None:
    settings.READTRACK = {"NETWORKS": {"doubtful": [file_with(PLAIN)]}}
    meta = {"REMOTE_ADDR": "198.51.100.1"}
    assert lookup.files().loaded is lookup.NOTHING
    lookup.is_doubtful(meta)  # has a thread read the file
    assert comes_true(lambda: lookup.is_doubtful(meta))


def test_a_replaced_file_is_read_again_and_the_same_one_is_not(
    settings: Settings, file_with: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_with("198.51.100.0/24")
    assert doubtful(settings, [path], "198.51.100.1") == [True]
    loaded = lookup.files().loaded
    lookup.files().read()
    assert lookup.files().loaded is loaded
    new = file_with("203.0.113.0/24 # longer")
    Path(new).replace(path)
    lookup.files().read()
    assert not lookup.is_doubtful({"REMOTE_ADDR": "198.51.100.1"})
    assert lookup.is_doubtful({"REMOTE_ADDR": "203.0.113.1"})


def test_a_replaced_file_is_noticed_after_some_minutes(
    settings: Settings, file_with: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "AGE", 0.0)  # each look is due
    path = file_with("198.51.100.0/24")
    doubtful(settings, [path])
    Path(file_with("203.0.113.0/24")).replace(path)
    assert comes_true(lambda: lookup.is_doubtful({"REMOTE_ADDR": "203.0.113.1"}))


def test_a_file_that_is_gone_later_leaves_the_page_alone(
    settings: Settings, file_with: MakeFile, caplog: pytest.LogCaptureFixture
) -> None:
    path = file_with("198.51.100.0/24")
    doubtful(settings, [path])
    Path(path).unlink()
    lookup.files().read()
    assert lookup.is_doubtful({"REMOTE_ADDR": "198.51.100.1"}) is False
    assert f"{path} is left out" in caplog.text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no networks"),
        ("nothing here\n1.2.3", "no networks"),
        ("\0" * 5_000, "no networks"),
        ("0.0.0.0/0\n::/0", "no networks"),  # everybody would be doubtful
        ('{"prefixes": []}', "no networks"),
        ("{", "no valid JSON"),
        ("[" * 200_000, "no valid JSON"),
    ],
)
def test_a_list_without_networks_is_warned_of_and_no_page_suffers(
    settings: Settings,
    file_with: MakeFile,
    caplog: pytest.LogCaptureFixture,
    content: str,
    words: str,
) -> None:
    path = file_with(content)
    assert doubtful(settings, [path, "203.0.113.0/24"], "0.0.0.1", "203.0.113.5") == [False, True]
    assert f"{path} is left out" in caplog.text
    message = the_message("readtrack.W070")
    assert path in message.msg
    assert words in message.msg
    assert "'doubtful'" in str(message.hint)


def test_a_huge_list_is_not_read(
    settings: Settings, file_with: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "LONGEST_LIST", 10)
    assert doubtful(settings, [file_with("198.51.100.0/24")], "198.51.100.1") == [False]
    assert "larger than 10 bytes" in the_message("readtrack.W070").msg


def test_a_missing_file_a_directory_and_a_path_that_is_none_are_warned_of(
    settings: Settings, tmp_path: Path
) -> None:
    entries = [str(tmp_path / "missing.json"), tmp_path, "a\0b", "203.0.113.0/33"]
    assert doubtful(settings, entries, "203.0.113.1", databases=[tmp_path / "no.mmdb"]) == [False]
    assert found() == ["readtrack.W070"] * 5


def test_what_is_no_file_is_not_read(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # because the path of a socket has to be short
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with suppress(BrokenPipeError):  # it was opened, and not read
            pipe.write_text("198.51.100.0/24")

    writer = Thread(target=write, daemon=True)  # or else who reads the pipe would wait for ever
    writer.start()
    with closing(socket(AF_UNIX)) as server:
        server.bind("socket")
        for path in (pipe, tmp_path / "socket", tmp_path, Path(os.devnull), Path("/dev/zero")):
            assert doubtful(settings, [path], "198.51.100.1", databases=[path]) == [False], path
            assert found() == ["readtrack.W070"] * 2
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
    writer.join()


@pytest.mark.django_db
def test_a_file_that_is_gone_keeps_no_command_from_running(
    settings: Settings, file_with: MakeFile, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.mmdb"
    empty.touch()
    missing = [file_with(""), str(tmp_path / "missing.json"), "AS16509"]
    settings.READTRACK = {"NETWORKS": {"doubtful": missing, "databases": [empty]}}
    post = factories.post()
    factories.browser().get(f"/posts/{post.pk}/")
    call_command("readtrack", "flush", skip_checks=False, verbosity=0)
    post.refresh_from_db()
    assert post.view_count == 1
    call_command("check")
    call_command("migrate", skip_checks=False, verbosity=0)
    assert found() == ["readtrack.W070"] * 4


@pytest.mark.parametrize(
    ("entries", "shares"),
    [
        (["0.0.0.0/1", "128.0.0.0/1"], ["100% of all addresses of IPv4"]),
        (["0.0.0.0/2", "64.0.0.0/3"], ["38% of all addresses of IPv4"]),
        (
            ["2000::/4", "0.0.0.0/1"],
            ["50% of all addresses of IPv4", "50% of all addresses of IPv6"],
        ),
        (["::/1"], ["100% of all addresses of IPv6"]),
        (["0.0.0.0/3", "2000::/5", "AS16509", "203.0.113.0/24"], []),
    ],
)
def test_networks_that_doubt_most_visitors_are_warned_of(
    settings: Settings, file_with: MakeFile, operators: str, entries: list[str], shares: list[str]
) -> None:
    for listed in (entries, [file_with("\n".join(entries)), "AS16509"]):
        settings.READTRACK = {"NETWORKS": {"doubtful": listed, "databases": [operators]}}
        messages = [message.msg for message in check_setup(None)]
        assert messages == [f"READTRACK['NETWORKS'] doubts {share}." for share in shares]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_must_not_be_read_is_warned_of(settings: Settings, file_with: MakeFile) -> None:
    path = file_with(PLAIN)
    Path(path).chmod(0)
    assert doubtful(settings, [path], "198.51.100.1", databases=[path]) == [False]
    assert found() == ["readtrack.W070"] * 2


def test_an_as_number_needs_a_database(settings: Settings, tmp_path: Path) -> None:
    countries = write_database(tmp_path / "c.mmdb", {"192.0.2.0/24": {"country_code": "DE"}})
    settings.READTRACK = {"NETWORKS": {"doubtful": ["AS16509"], "databases": [countries]}}
    assert "has AS numbers" in the_message("readtrack.W070").msg


@pytest.mark.parametrize("content", [b"", b"no database", b"\xab\xcd\xefMaxMind.com"])
def test_a_file_that_is_no_database_is_warned_of_and_no_page_suffers(
    settings: Settings, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x.mmdb"
    path.write_bytes(content)
    assert doubtful(settings, ["AS1"], "198.51.100.1", databases=[path]) == [False]
    assert found() == ["readtrack.W070"] * 2


def test_a_database_of_something_else_is_warned_of(settings: Settings, tmp_path: Path) -> None:
    path = write_database(
        tmp_path / "x.mmdb", {"192.0.2.0/24": {"risk": 7}, "198.51.100.0/24": "x"}
    )
    settings.READTRACK = {"NETWORKS": {"databases": [path]}}
    assert "neither AS numbers nor countries" in the_message("readtrack.W070").msg
    lookup.files().read()
    assert lookup.country("198.51.100.1") == ""


def test_a_broken_database_is_logged_once_without_the_address(
    settings: Settings, operators: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = Path(operators).read_bytes()
    metadata = whole.rindex(b"\xab\xcd\xefMaxMind.com")
    tree_end = whole.index(bytes(16))  # behind it are the records
    records = b"\xff" * (metadata - tree_end - 16)
    Path(operators).write_bytes(whole[: tree_end + 16] + records + whole[metadata:])
    clients = ["198.51.100.77", "198.51.100.78"]
    assert doubtful(settings, ["AS16509"], *clients, databases=[operators]) == [False, False]
    assert caplog.text.count("cannot be read") == 1
    assert "198.51.100" not in caplog.text
    assert "readtrack.W070" in found()


def test_a_missing_extra_is_warned_of(
    settings: Settings, operators: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "maxminddb", None)
    assert doubtful(settings, [], "198.51.100.1", databases=[operators]) == [False]
    assert "pip install readtrack[networks]" in the_message("readtrack.W070").msg


@pytest.mark.parametrize(
    "value",
    [
        ["AS16509"],
        {"doubtful": "AS16509"},
        {"doubtful": [16509]},
        {"databases": None},
    ],
)
def test_a_setting_of_another_form_is_an_error(settings: Settings, value: Any) -> None:
    settings.READTRACK = {"NETWORKS": value}
    assert found() == ["readtrack.E002"]
    lookup.files().read()  # a site may run with it
    assert lookup.is_doubtful({"REMOTE_ADDR": "198.51.100.1"}) is False


def test_a_check_names_the_form_and_the_keys(settings: Settings) -> None:
    settings.READTRACK = {"NETWORKS": {"databases": [Path("a.mmdb"), "b.mmdb"]}}
    assert found() == ["readtrack.W070"] * 2  # there are no such files
    settings.READTRACK = {"NETWORKS": {"databases": 7}}
    assert "Give it a list of strings or paths, or" in str(the_message("readtrack.E002").hint)
    settings.READTRACK = {"NETWORKS": {"database": "a.mmdb"}}
    assert "Did you mean: databases?" in str(the_message("readtrack.W092").hint)


def test_no_thread_is_no_error(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread:
        def __init__(self, **options: Any) -> None: ...

        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    settings.READTRACK = {"NETWORKS": {"doubtful": ["198.51.100.0/24"]}}
    monkeypatch.setattr(lookup, "Thread", NoThread)
    assert lookup.is_doubtful({"REMOTE_ADDR": "198.51.100.1"}) is False


# Countries


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"country": {"iso_code": "DE", "names": {"en": "Germany"}}}, "DE"),
        ({"country_code": "fr"}, "FR"),
        ({"country": "NL", "country_name": "Netherlands"}, "NL"),
        ({"country": "Netherlands", "country_code": "NL"}, "NL"),
        ({"country": "Netherlands"}, "US"),  # by the registries
        ({"autonomous_system_number": 15169}, "US"),
        ({"country": {"iso_code": 7}}, "US"),
    ],
)
def test_a_country_comes_from_a_database_before_the_registries(
    settings: Settings, tmp_path: Path, record: Any, code: str
) -> None:
    path = write_database(tmp_path / "x.mmdb", {"8.8.8.0/24": record})
    settings.READTRACK = {"NUMBERS": {"dimensions": ["country"]}, "NETWORKS": {"databases": [path]}}
    lookup.files().read()
    request = RequestFactory().get("/", REMOTE_ADDR="8.8.8.8")
    assert dimensions.values(request) == (("country", code),)


def test_a_database_is_enough_for_countries(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = write_database(
        tmp_path / "x.mmdb", {"192.0.2.0/24": {"country_code": "DE"}}, ip_version=4
    )
    monkeypatch.setitem(sys.modules, "iptocc", None)
    request = RequestFactory().get("/", REMOTE_ADDR="8.8.8.8")
    settings.READTRACK = {"NUMBERS": {"dimensions": ["country"]}, "NETWORKS": {"databases": [path]}}
    lookup.files().read()
    assert lookup.country("192.0.2.1") == "DE"
    assert lookup.country("2001:db8::") == ""  # the file has IPv4 only
    assert lookup.country("") == ""
    assert dimensions.values(request) == ()
    assert found() == []
    assert caplog.text == ""
    settings.READTRACK = {"NUMBERS": {"dimensions": ["country"]}}
    assert dimensions.values(request) == ()
    assert "The dimension country failed" in caplog.text


def test_a_long_list_is_looked_up_by_bisection(settings: Settings, file_with: MakeFile) -> None:
    chance = Random(3)
    starts = [chance.randrange(2**32) & ~255 for _ in range(20_000)]
    path = file_with("\n".join(f"{ip_address(start)}/24" for start in starts))
    sample = starts[:500]
    assert all(doubtful(settings, [path], *(str(ip_address(start + 7)) for start in sample)))
    beside = [start + 256 for start in sample if start + 256 not in starts and start + 256 < 2**32]
    assert not any(doubtful(settings, [path], *(str(ip_address(start)) for start in beside)))


def test_no_thread_is_left(settings: Settings, file_with: MakeFile) -> None:
    settings.READTRACK = {"NETWORKS": {"doubtful": [file_with(PLAIN)]}}
    lookup.is_doubtful({"REMOTE_ADDR": "198.51.100.1"})
    assert comes_true(lambda: all(thread.name != "readtrack-networks" for thread in threads()))


@pytest.fixture(autouse=True)
def _logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "readtrack")


@pytest.mark.django_db
def test_an_address_is_kept_nowhere(
    settings: Settings,
    operators: str,
    redis: Redis,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.READTRACK = {
        "NUMBERS": {"dimensions": ["country"]},
        "NETWORKS": {"doubtful": ["AS16509", "203.0.113.0/24"], "databases": [operators]},
    }
    lookup.files().read()
    post = factories.post()
    factories.browser().get(f"/posts/{post.pk}/", REMOTE_ADDR="198.51.100.77")
    assert reports.views([post])[post] == 1
    assert lookup.is_doubtful({"REMOTE_ADDR": "198.51.100.77"})
    flush()
    stored = [f"{key!r} {redis.dump(key)!r}" for key in redis.scan_iter()]
    tables = [
        model
        for model in apps.get_models()
        if model._meta.app_label.startswith(("readtrack", "site"))
    ]
    stored += [repr(list(model._base_manager.values())) for model in tables]
    stored.append(caplog.text)
    assert stored
    packed = repr(inet_aton("198.51.100.77"))[2:-1]
    assert not [text for text in stored if "198.51.100" in text or packed in text]
