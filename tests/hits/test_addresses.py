"""The client's address, behind proxies and without them, and what is noticed about addresses."""

import logging
from collections.abc import Iterable
from ipaddress import ip_network
from itertools import cycle, product
from threading import Barrier, Thread
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings
from redis import Redis

from readtrack import reports
from readtrack.hits.addresses import (
    MANY,
    NOTICES,
    SAMPLE,
    Notice,
    Watch,
    _public_candidates,
    hops,
    network,
    proxies,
    watch,
)
from readtrack.hits.hit import REASONS
from readtrack.store.skips import skip_buffer
from tests.doctor.conftest import found
from tests.support import factories
from tests.support.factories import BROWSER
from tests.support.rows import each_row
from tests.support.wire import Wire

TWO_PROXIES = {"PROXIES": ["10.0.0.0/8", "192.0.2.7"]}


@each_row(
    ("address", "known_as"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::9", "2001:db8:1:2::"),
        ("64:ff9b::203.0.113.9", "203.0.113.9"),
        ("64:FF9B:0:0:0:0:CB00:7109", "203.0.113.9"),
        ("::ffff:0:203.0.113.9", "203.0.113.9"),
        ("2002:cb00:7109:1::1", "203.0.113.9"),
        ("2001:0:4136:e378:8000:63bf:34ff:8ef6", "203.0.113.9"),
        ("64:ff9b:1::203.0.113.9", "64:ff9b:1::cb00:7109"),
        ("64:ff9b:1:7::203.0.113.9", "64:ff9b:1:7::cb00:7109"),
        ("64:ff9b:2::203.0.113.9", "64:ff9b:2::"),
        ("2001:1:4136:e378:8000:63bf:34ff:8ef6", "2001:1:4136:e378::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
        ("unix:", ""),
        ("999.1.1.1", ""),
    ],
)
def test_a_network_is_an_address_or_a_household(address: str, known_as: str) -> None:
    assert network(*hops({"REMOTE_ADDR": address})) == known_as


@pytest.mark.parametrize(
    "header", ["HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_FORWARDED", "HTTP_CF_CONNECTING_IP"]
)
def test_a_header_forged_by_a_public_peer_changes_nothing_by_default(header: str) -> None:
    assert network(*hops({"REMOTE_ADDR": "203.0.113.9", header: "198.51.100.1"})) == "203.0.113.9"


@each_row(
    "peer",
    [
        *(
            "127.0.0.1",
            "127.0.1.1",
            "::1",
            "10.0.0.1",
            "172.17.0.1",
            "192.168.1.1",
            "169.254.1.1",
            "100.64.0.1",
        ),
        *("fd00::1", "fe80::1%eth0", "::ffff:10.0.0.1", "", "b''", "unix:", "localhost"),
    ],
)
@each_row(
    ("forwarded", "client"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("1.1.1.1, 198.51.100.1", "198.51.100.1"),
        ("1.1.1.1,198.51.100.1 , 10.0.0.7, 127.0.0.1", "198.51.100.1"),
        ("198.51.100.1:50123", "198.51.100.1"),
        ("[2001:db8:1:2:3::4]:443", "2001:db8:1:2::"),
        ("[2001:db8:1:2:3::4]", "2001:db8:1:2::"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::"),
        ("::ffff:198.51.100.1", "198.51.100.1"),
        ("unknown, ,[],1:2:3, 198.51.100.1", "198.51.100.1"),
        ("unix:, 198.51.100.1, 10.0.0.7", "198.51.100.1"),
        ('"198.51.100.1"', "198.51.100.1"),
        ("'198.51.100.1:443'", "198.51.100.1"),
        ('1.1.1.1, "[2001:db8:1:2:3::4]:443"', "2001:db8:1:2::"),
        ("1.1.1.1:99999, 1.1.1.1:x, [1.1.1.1, 198.51.100.1", "198.51.100.1"),
        ("64:ff9b::198.51.100.1", "198.51.100.1"),
        ("1" * 9000 + ", 198.51.100.1", "198.51.100.1"),
    ],
)
def test_by_default_the_last_public_address_that_a_private_peer_forwards_is_believed(
    peer: str, forwarded: str, client: str
) -> None:
    assert network(*hops({"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded})) == client


PRIVATE_NETWORKS = [
    *(
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
    ),
    *("::/64", "fc00::/7", "fe80::/10"),
]


@each_row("name", PRIVATE_NETWORKS)
def test_a_private_network_ends_where_its_standard_says(name: str) -> None:
    private: Any = ip_network(name)

    def has_public_client(address: Any) -> bool:
        return network(*hops({"REMOTE_ADDR": "", "HTTP_X_FORWARDED_FOR": str(address)})) != ""

    assert not has_public_client(private[0])
    assert not has_public_client(private[-1])
    assert has_public_client(private[-1] + 1)
    if int(private[0]):
        assert has_public_client(private[0] - 1)


@each_row("forwarded", ["", " ", ",", "10.1.2.3", "10.1.2.3, 192.168.0.1", "::1", "[::1]:80"])
def test_by_default_a_peer_that_forwards_no_public_address_is_the_client(forwarded: str) -> None:
    assert (
        network(*hops({"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": forwarded})) == "10.0.0.1"
    )
    assert network(*hops({"REMOTE_ADDR": "", "HTTP_X_FORWARDED_FOR": forwarded})) == ""


def test_an_address_that_is_forged_beside_the_own_one_changes_nothing() -> None:
    for forwarded in ("203.0.113.9, 198.51.100.1", "198.51.100.1, 203.0.113.9"):
        assert (
            network(*hops({"REMOTE_ADDR": "203.0.113.9", "HTTP_X_FORWARDED_FOR": forwarded}))
            == "203.0.113.9"
        )


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "203.0.113.9", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9, 198.51.100.1", "203.0.113.9"),
        ("2001:db8:1:2::9", "[2001:db8:1:2:3::4]:443, 198.51.100.1", "2001:db8:1:2::"),
        ("203.0.113.9:8000", "203.0.113.9, 198.51.100.1", "203.0.113.9"),
    ],
)
def test_a_public_peer_that_the_header_names_is_the_client_and_no_other_address_of_it(
    peer: str, forwarded: str, client: str
) -> None:
    assert network(*hops({"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded})) == client


def test_of_a_header_with_a_public_peer_in_it_the_peer_comes_last() -> None:
    assert _public_candidates("203.0.113.9, 198.51.100.1", "203.0.113.9") == [
        "203.0.113.9",
        "198.51.100.1",
        "203.0.113.9",
    ]
    assert _public_candidates("198.51.100.1", "203.0.113.9") == []
    assert _public_candidates("198.51.100.1, 10.0.0.2", "10.0.0.1") == ["198.51.100.1"]


@pytest.mark.parametrize(
    ("options", "headers", "client"),
    [
        (
            {"ADDRESS_HEADER": "Forwarded"},
            {"FORWARDED": "for=198.51.100.1"},
            "198.51.100.1",
        ),
        (
            {"ADDRESS_HEADER": "forwarded"},
            {"FORWARDED": 'for=1.1.1.1, For="[2001:db8:1:2::4]:443";proto=https;by=10.0.0.1'},
            "2001:db8:1:2::",
        ),
        (
            {"ADDRESS_HEADER": "Forwarded", "PROXIES": 2},
            {"FORWARDED": "proto=http;for=198.51.100.1, for=203.0.113.5;by=10.0.0.2"},
            "198.51.100.1",
        ),
        (
            {"ADDRESS_HEADER": "Forwarded"},
            {"FORWARDED": "for=unknown, for=_hidden"},
            "",
        ),
        (
            {"ADDRESS_HEADER": "Forwarded"},
            {"X_FORWARDED_FOR": "198.51.100.1"},
            "10.0.0.1",
        ),
        (
            {"ADDRESS_HEADER": "CF-Connecting-IP"},
            {"CF_CONNECTING_IP": "198.51.100.1", "X_FORWARDED_FOR": "1.1.1.1"},
            "198.51.100.1",
        ),
    ],
)
def test_a_site_says_in_which_header_its_proxies_name_the_client(
    settings: Settings, options: dict[str, object], headers: dict[str, str], client: str
) -> None:
    settings.READTRACK = options
    meta = {f"HTTP_{name}": value for name, value in headers.items()}
    assert network(*hops({"REMOTE_ADDR": "10.0.0.1", **meta})) == client


def test_a_site_may_believe_no_header(settings: Settings) -> None:
    settings.READTRACK = {"PROXIES": 0}
    assert (
        network(*hops({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "198.51.100.1"}))
        == "127.0.0.1"
    )


@each_row(
    ("options", "forwarded", "direct", "client"),
    [
        ({"PROXIES": 1}, "198.51.100.1", "10.0.0.1", "198.51.100.1"),
        ({"PROXIES": 1}, "1.1.1.1, 198.51.100.1", "10.0.0.1", "198.51.100.1"),
        ({"PROXIES": 2}, "1.1.1.1, 198.51.100.1, 10.2.0.1", "10.0.0.1", "198.51.100.1"),
        ({"PROXIES": 2}, "198.51.100.1", "203.0.113.9", "203.0.113.9"),
        ({"PROXIES": 1}, "", "203.0.113.9", "203.0.113.9"),
        ({"PROXIES": 1}, "nonsense", "203.0.113.9", ""),
        ({"PROXIES": 1}, "198.51.100.1", "", "198.51.100.1"),
        ({"PROXIES": 1}, "2001:db8:1:2:3::4", "10.0.0.1", "2001:db8:1:2::"),
        ({"PROXIES": 1}, "1" * 9000 + ", 198.51.100.1", "10.0.0.1", "198.51.100.1"),
        (TWO_PROXIES, "1.1.1.1, 198.51.100.1, 10.2.0.1", "192.0.2.7", "198.51.100.1"),
        (TWO_PROXIES, "198.51.100.1, 10.2.0.1", "203.0.113.9", "203.0.113.9"),
        (TWO_PROXIES, "198.51.100.1, 203.0.113.5", "192.0.2.7", "203.0.113.5"),
        (TWO_PROXIES, "10.2.0.1", "192.0.2.7", "10.2.0.1"),
        ({"PROXIES": ["2001:db8:1:2::7"]}, "198.51.100.1", "2001:db8:1:2::7", "198.51.100.1"),
        ({"PROXIES": ["2001:db8:1:2::7"]}, "1.1.1.1", "2001:db8:1:2::8", "2001:db8:1:2::"),
        ({"PROXIES": ["10.0.0.1"]}, "198.51.100.1", "::ffff:10.0.0.1", "198.51.100.1"),
    ],
)
def test_configured_proxies_are_believed(
    settings: Settings, options: dict[str, object], forwarded: str, direct: str, client: str
) -> None:
    settings.READTRACK = options
    assert network(*hops({"REMOTE_ADDR": direct, "HTTP_X_FORWARDED_FOR": forwarded})) == client


# What the client writes, followed by what the nearest proxies add where they know no address.
FORGED = "10.9.9.9"
NO_ADDRESSES = ("unix:", "", "unknown", "_hidden", "[", "999.1.1.1", "10.0.0.300", "::1::", "-")


@pytest.mark.needs_parts("metrics")
@pytest.mark.parametrize("hop", NO_ADDRESSES)
@pytest.mark.parametrize(
    ("proxies_setting", "forwarded", "direct"),
    [
        (1, "{forged}, {hop}", "10.0.0.1"),
        (1, "{forged},{hop}", ""),
        (1, " {hop}", "203.0.113.9"),
        (2, "{forged}, {hop}, 10.0.0.2", "10.0.0.1"),
        (2, "{forged}, {forged}, {hop}, 10.0.0.2", "10.0.0.1"),
        (2, " {hop}", "10.0.0.1"),  # too few hops, and the connection is that of a proxy
        (["10.0.0.1"], "{forged}, {hop}", "10.0.0.1"),
        (["127.0.0.1"], "{forged}, {hop}", ""),
        (["10.0.0.0/8", "192.0.2.7"], "{forged}, 10.0.0.2, {hop}", "192.0.2.7"),
        (["10.0.0.0/8", "192.0.2.7"], "{forged}, {hop}, 10.0.0.2", "192.0.2.7"),
        (2, '", {forged}, {hop}, 10.0.0.2', "10.0.0.1"),  # a quote that does not end
        ("auto", "{forged}, {hop}", "10.0.0.1"),
        ("auto", "1.1.1.1, {hop}", "127.0.0.1"),
        ("auto", "1.1.1.1, {hop}, 10.0.0.2", ""),
        ("auto", "{forged}, 1.1.1.1,{hop} , 10.0.0.2, 192.168.0.1", "unix:"),
    ],
)
def test_where_the_hop_of_the_client_is_no_address_there_is_no_client(
    settings: Settings, proxies_setting: Any, forwarded: str, direct: str, hop: str
) -> None:
    from readtrack.metrics import scrapers

    header = forwarded.format(forged=FORGED, hop=hop)
    meta = {"REMOTE_ADDR": direct, "HTTP_X_FORWARDED_FOR": header}
    settings.READTRACK = {
        "PROXIES": proxies_setting,
        "METRICS": {"networks": ["10.0.0.0/8", "192.0.2.0/24", "127.0.0.1"]},
    }
    assert network(*hops(meta)) == ""
    assert scrapers.refusal(meta) == 403


def test_a_quote_that_the_client_leaves_open_hides_no_hop(settings: Settings) -> None:
    settings.READTRACK = {"PROXIES": 1}
    meta = {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": '"1.1.1.1, 198.51.100.1'}
    assert network(*hops(meta)) == "198.51.100.1"
    settings.READTRACK = {"PROXIES": 1, "ADDRESS_HEADER": "Forwarded"}
    meta = {"REMOTE_ADDR": "10.0.0.1", "HTTP_FORWARDED": 'for="1.1.1.1, for=198.51.100.1;by=_x'}
    assert network(*hops(meta)) == "198.51.100.1"


@pytest.mark.parametrize(
    "options",
    [
        {"PROXIES": ["10.0.0.0/99"]},
        {"PROXIES": "10.0.0.1"},
        {"PROXIES": -1},
        {"PROXIES": "automatic"},
        {"PROXIES": [7]},
    ],
)
def test_unusable_settings_are_named_and_no_header_is_trusted(
    settings: Settings, options: dict[str, object]
) -> None:
    settings.READTRACK = options
    assert proxies().error
    assert (
        network(*hops({"REMOTE_ADDR": "203.0.113.9", "HTTP_X_FORWARDED_FOR": "1.1.1.1"}))
        == "203.0.113.9"
    )


def test_the_defaults_can_be_used() -> None:
    assert proxies().error == ""


AGENTS = [BROWSER.replace("140.0", f"{number}.0") for number in range(130, 140)]
NGINX = [
    (f"203.0.{number // 250}.{number % 250 + 1}", AGENTS[number % 10]) for number in range(300)
]


@pytest.mark.django_db
def test_hundreds_of_new_readers_behind_a_proxy_count_with_default_settings() -> None:
    post = factories.post()
    for address, agent in NGINX:
        Client().get(
            f"/posts/{post.pk}/", headers={"User-Agent": agent, "X-Forwarded-For": address}
        )
    assert reports.views([post]) == {post: 300}
    assert found("addresses")[0].level == "ok"


def see(
    addresses: Iterable[str], agents: Iterable[str] = AGENTS[:1], *, peer: str = "203.0.113.9"
) -> None:
    """Shows the watch one visitor for each address and agent, who came through this peer."""
    for address, agent in product(addresses, agents):
        network(*hops({"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": address}), agent=agent)


SAME = ["198.51.100.1"]
TWENTY = [f"198.51.100.{number}" for number in range(SAMPLE)]
BEHIND_CDN = [f"{address}, 203.0.113.{number % 3}" for number, address in enumerate(TWENTY)]
BALANCED = [f"{address}, 10.0.0.7" for address in TWENTY]  # a load balancer in front of nginx


@each_row(
    ("options", "peer", "addresses", "agents", "noticed"),
    [
        (
            {},
            "203.0.113.9",
            TWENTY,
            AGENTS[:1],
            {"forwarded"},
        ),  # a CDN that connects from public addresses
        ({}, "10.0.0.1", BEHIND_CDN, AGENTS[:1], {"forwarded"}),  # a CDN in front of nginx
        (
            {},
            "10.0.0.1",
            [f"10.1.0.{number}" for number in range(SAMPLE)],
            AGENTS[:1],
            {"forwarded"},
        ),  # an intranet
        ({"PROXIES": 2}, "10.0.0.1", TWENTY, AGENTS[:1], {"forwarded"}),  # only one proxy
        ({"PROXIES": ["10.0.0.2"]}, "10.0.0.1", TWENTY, AGENTS[:1], {"forwarded"}),
        ({}, "10.0.0.1", [""] * 2, AGENTS, {"one address"}),  # a proxy that forwards nothing
        ({}, "", [""] * 2, AGENTS, {"one address"}),
        ({"PROXIES": 0}, "10.0.0.1", TWENTY[:2], AGENTS, {"forwarded"}),
        ({"PROXIES": 0}, "10.0.0.1", [""] * 2, AGENTS, {"one address"}),
        ({"PROXIES": 1}, "10.0.0.1", BEHIND_CDN, AGENTS[:1], {"forwarded"}),  # a CDN as well
        ({"PROXIES": ["10.0.0.1"]}, "10.0.0.1", BEHIND_CDN, AGENTS[:1], {"forwarded"}),
        ({"PROXIES": 1}, "10.0.0.1", BALANCED, AGENTS[:1], {"forwarded"}),
        ({"PROXIES": 3}, "10.0.0.1", BEHIND_CDN, AGENTS[:1], {"forwarded"}),
        ({"PROXIES": 1}, "10.0.0.1", TWENTY, AGENTS[:1], set()),
        ({"PROXIES": 2}, "10.0.0.1", BALANCED, AGENTS[:1], set()),
        ({"PROXIES": ["203.0.113.0/24", "10.0.0.1"]}, "10.0.0.1", BEHIND_CDN, AGENTS[:1], set()),
        (
            {"PROXIES": 1},
            "10.0.0.1",
            [*TWENTY[: SAMPLE // 2], *BEHIND_CDN[SAMPLE // 2 :]],
            AGENTS[:1],
            set(),
        ),  # some of the visitors have proxies of their own
        ({"PROXIES": 0}, "10.0.0.1", [f"10.1.0.{n}" for n in range(SAMPLE)], AGENTS[:1], set()),
        ({}, "10.0.0.1", SAME * 2, AGENTS, {"one address"}),
        ({}, "10.0.0.1", SAME * 5, AGENTS[: MANY - 1], set()),  # a household or an office
        ({}, "10.0.0.1", TWENTY, AGENTS, set()),
        ({"PROXIES": 2}, "10.0.0.1", BEHIND_CDN, AGENTS, set()),
        (
            {},
            "203.0.113.9",
            TWENTY[: SAMPLE // 2] + [""] * (SAMPLE // 2),
            AGENTS[:1],
            set(),
        ),  # some forge it
        ({"PROXIES": 0}, "203.0.113.9", TWENTY, AGENTS[:1], {"forwarded"}),
        ({"PROXIES": 0}, "203.0.113.9", ["203.0.113.9"] * SAMPLE, AGENTS[:1], set()),
        (
            {},
            "203.0.113.9",
            ["203.0.113.9"] * SAMPLE,
            AGENTS[:1],
            set(),
        ),  # uvicorn put the client into REMOTE_ADDR
        (
            {},
            "203.0.113.9",
            [f"{address}, 203.0.113.9" for address in TWENTY],
            AGENTS[:1],
            {"forwarded"},
        ),  # or a CDN
        ({}, "203.0.113.9", TWENTY[1:], AGENTS[:1], set()),  # too few to judge
    ],
)
def test_addresses_that_cannot_be_the_visitors_own_are_noticed(
    settings: Settings,
    options: dict[str, object],
    peer: str,
    addresses: list[str],
    agents: list[str],
    noticed: set[str],
) -> None:
    settings.READTRACK = options
    vars(watch).update(vars(Watch()))
    see(addresses, agents, peer=peer)
    assert watch.notices == noticed


def test_a_notice_is_logged_once_and_the_watch_remembers_one_sample(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "readtrack"):
        see(TWENTY * 10)
    assert [record.getMessage() for record in caplog.records] == [
        f"{NOTICES['forwarded']} Set READTRACK['PROXIES'] to the number of proxies, or new visitors look like one."
    ]
    assert len(watch._sample) < SAMPLE


def test_threads_may_judge_the_same_sample() -> None:
    barrier = Barrier(8)

    def visit() -> None:
        barrier.wait()
        see(TWENTY * 50)

    threads = [Thread(target=visit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watch.notices == {"forwarded"}
    assert len(watch._sample) < SAMPLE


@pytest.mark.needs_parts("dashboard")
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("notice", "peer", "forwarded"),
    [("forwarded", "203.0.113.9", "198.51.100.7"), ("one address", "10.0.0.1", "")],
)
def test_doctor_and_dashboard_say_for_a_day_what_was_noticed(
    admin_client: Client, wire: Wire, redis: Redis, notice: Notice, peer: str, forwarded: str
) -> None:
    post = factories.post()
    page = f"/posts/{post.pk}/function/"
    factories.browser().get(page)
    assert found("addresses")[0].level == "ok"
    assert NOTICES[notice] not in admin_client.get("/admin/readtrack/dashboard/").text
    vars(watch).update(vars(Watch()))
    with wire.counted() as trips:
        for number in range(SAMPLE):
            headers = {"User-Agent": AGENTS[number % MANY]} | (
                {"X-Forwarded-For": forwarded} if forwarded else {}
            )
            Client(REMOTE_ADDR=peer).get(page, headers=headers)
    assert trips == [2 * SAMPLE]  # a view and a count each, as without a notice
    skip_buffer.send_rest()
    [finding] = found("addresses")
    assert finding.level == "warning"
    assert NOTICES[notice] in finding.message
    assert "PROXIES" in finding.hint
    assert NOTICES[notice] in admin_client.get("/admin/readtrack/dashboard/").text
    assert reports.skips().keys() == {*REASONS}
    redis.delete(*redis.keys("views:skips:*"))
    assert found("addresses")[0].level == "ok"


@pytest.mark.django_db
@pytest.mark.parametrize("number", [0, 1, 3])
def test_the_doctor_notices_a_wrong_number_of_proxies_behind_a_cdn_with_many_edges(
    settings: Settings, number: int
) -> None:
    settings.READTRACK = {"PROXIES": number}
    page = f"/posts/{factories.post().pk}/"
    for client, edge in zip(range(100), cycle(range(12)), strict=False):
        headers = {
            "User-Agent": AGENTS[client % MANY],
            "X-Forwarded-For": f"198.51.100.{client}, 203.0.113.{edge}",
        }
        Client(REMOTE_ADDR="10.0.0.1").get(page, headers=headers)
    skip_buffer.send_rest()
    [finding] = found("addresses")
    assert finding.level == "warning"
    assert NOTICES["forwarded"] in finding.message
