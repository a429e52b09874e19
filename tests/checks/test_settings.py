"""Settings that are misspelt, of a wrong type or unusable are found, with what to do about it."""

from typing import Any

import pytest
from pytest_django import Settings

from readtrack import parts
from readtrack.checks.setup import check_setup
from readtrack.conf import DEFAULTS
from tests.checks.findings import found, the_message
from tests.support.rows import each_row


@pytest.mark.parametrize(
    ("name", "value", "ids"),
    [
        ("READTRACK", [], ["readtrack.E001"]),
        ("READTRACK", None, ["readtrack.E001"]),
        ("READTRACK", {"WINDWO": 60}, ["readtrack.W003"]),
        ("READTRACK", {1: 60}, ["readtrack.W003"]),
    ],
)
def test_a_wrong_setting_is_found(
    settings: Settings, name: str, value: Any, ids: list[str]
) -> None:
    setattr(settings, name, value)
    assert found() == ids


@each_row(
    ("name", "value", "fits"),
    [
        ("WINDOW", 60, True),
        ("WINDOW", 0, True),
        ("WINDOW", "60", False),
        ("WINDOW", 60.0, False),
        ("WINDOW", True, False),
        ("WINDOW", -1, False),
        ("WINDOW", None, False),
        ("TIMEOUT", 1, True),
        ("TIMEOUT", 0.1, True),
        ("TIMEOUT", 0, False),
        ("TIMEOUT", "fast", False),
        ("PREFIX", "site:", True),
        ("PREFIX", b"site:", False),
        ("BOTS", {}, True),
        ("BOTS", {"more": ("abot",)}, True),
        ("BOTS", {"more": "abot"}, False),
        ("BOTS", {"people": [7]}, False),
        ("BOTS", {"function": None}, False),
        ("BOTS", ["abot"], False),
        ("COOKIE", {"name": "id", "age": 60, "path": "/a", "domain": "", "consent": ""}, True),
        ("COOKIE", {"age": "60"}, False),
        ("COOKIE", {"age": True}, False),
        ("COOKIE", "id", False),
        ("DOTS", {"anonymous": 1_000}, True),
        ("DOTS", {"anonymous": True}, False),
        ("MODELS", {}, True),
        ("MODELS", ["site.Manual"], False),
        ("CACHE", ["default"], False),
        ("DOTS", {"form": "sequence"}, True),
        ("DOTS", {"form": "list"}, False),
        ("DOTS", {"readers": 5}, False),
        ("PROXIES", "auto", True),
        ("PROXIES", 0, True),
        ("PROXIES", "2", False),
        ("PROXIES", -1, False),
        ("PROXIES", True, False),
        ("PROXIES", ["10.0.0.1"], True),
        ("PROXIES", [7], False),
        ("RATE", [5, 10], True),
        ("RATE", (0, 0), True),
        ("RATE", (5,), False),
        ("RATE", (5, "10"), False),
        ("RATE", 5, False),
    ],
)
def test_a_setting_has_to_fit_its_type(
    settings: Settings, name: str, value: Any, fits: bool
) -> None:
    settings.READTRACK = {name: value}
    assert ("readtrack.E002" not in found()) == fits


@each_row("name", [*DEFAULTS, *parts.settings()])
@each_row("value", [object(), [[1]], {1: [1]}], ids=["object", "list", "dict"])
def test_the_checks_go_on_with_any_value_of_a_setting(
    settings: Settings, name: str, value: Any
) -> None:
    settings.READTRACK = {name: value}
    assert "readtrack.E002" in found() or isinstance(value, dict)


def test_messages_name_the_culprit_and_hints_the_way_out(settings: Settings) -> None:
    settings.READTRACK = {"WINDWO": 60, "IDLE_DAYS": "5"}
    typo, kind = the_message("readtrack.W003"), the_message("readtrack.E002")
    assert "WINDWO" in typo.msg
    assert "WINDOW" in str(typo.hint)
    assert "IDLE_DAYS" in kind.msg
    assert "'5'" in kind.msg
    assert str(kind.hint) == "Give it a whole number, at least 0, or leave it out for the default."


@each_row(
    ("options", "words"),
    [
        ({"WINDOW": -1}, "Give it a whole number, at least 0, or"),
        ({"TIMEOUT": 0}, "Give it a number above 0, or"),
        ({"ANONYMOUS": "x"}, "Give it one of 'cookie', 'hash', 'none', or"),
        ({"HONOUR_OPT_OUT": 1}, "Give it True or False, or"),
        ({"COOKIE": "id"}, "Give it a dict, or"),
        ({"PREFIX": 1}, "Give it a string, or"),
        ({"PROXIES": "one"}, "Give it 'auto', or the number of proxies, or a list of"),
    ],
)
def test_a_hint_says_what_fits_and_is_the_only_one(
    settings: Settings, options: dict[str, Any], words: str
) -> None:
    settings.READTRACK = options
    [message] = check_setup(None)
    assert message.id == "readtrack.E002"
    assert words in str(message.hint)
    [(name, value)] = options.items()
    assert message.msg == f"READTRACK['{name}'] is {value!r}."


@each_row(
    ("name", "key", "value", "words"),
    [
        ("COOKIE", "age", "60", "Give it a whole number, at least 0, or"),
        ("BOTS", "more", "abot", "Give it a list of strings, or"),
        ("DOTS", "readers", "x", "Give it one of 'auto', 'id', 'ordinal', or"),
        ("DOTS", "start_as_read", 1, "Give it True or False, or"),
    ],
)
def test_a_hint_says_what_fits_a_key(
    settings: Settings, name: str, key: str, value: Any, words: str
) -> None:
    settings.READTRACK = {name: {key: value}}
    [message] = check_setup(None)
    assert message.id == "readtrack.E002"
    assert words in str(message.hint)
    assert message.msg == f"READTRACK['{name}']['{key}'] is {value!r}."


@each_row(
    ("name", "key", "words"),
    [
        ("COOKIE", "nmae", "Did you mean: name?"),
        ("BOTS", "People", "Did you mean: people?"),
        ("COOKIE", 7, "Did you mean: name, age, path, domain, consent?"),
    ],
)
def test_a_key_that_does_not_exist_is_found_and_has_no_effect(
    settings: Settings, name: str, key: Any, words: str
) -> None:
    settings.READTRACK = {name: {key: "x"}}
    assert found() == ["readtrack.W092"]
    message = the_message("readtrack.W092")
    assert message.msg == f"READTRACK['{name}'] has no key {key!r}."
    assert message.hint == words


def test_for_a_key_outside_of_its_dict_the_hint_names_the_dict(settings: Settings) -> None:
    settings.READTRACK = {"START_AS_READ": True}
    assert the_message("readtrack.W003").hint == "Did you mean: DOTS['start_as_read']?"


@each_row(
    ("site", "hint"),
    [
        ({"NETWORKS": {"address_header": "Forwarded"}}, "ADDRESS_HEADER"),
        ({"DOTS": {"queryset": "shop.visible"}}, "FRONT_END['queryset']"),
        ({"COOKIE": {"anonymous": True}}, "ANONYMOUS, DOTS['anonymous']"),
        ({"BOTS": {"Funnels": True}}, "NUMBERS['funnels']"),
        ({"OWN_HOSTS": ["example.com"]}, "NUMBERS['own_hosts']"),
    ],
)
@pytest.mark.needs_parts("front_end", "numbers")
def test_a_key_in_the_wrong_place_is_told_the_right_one(
    settings: Settings, site: dict[str, Any], hint: str
) -> None:
    settings.READTRACK = site
    hints = [str(message.hint) for message in check_setup(None)]
    assert any(text.startswith(f"Did you mean: {hint}") for text in hints), hints


def test_for_a_name_that_resembles_nothing_the_hint_lists_all_names(settings: Settings) -> None:
    settings.READTRACK = {"ZZZZZZZZ": 1}
    assert "FLUSH_INTERVAL" in str(the_message("readtrack.W003").hint)


@each_row(
    ("options", "ids"),
    [
        ({"WINDOW": 0, "RATE": (5, 0)}, []),
        ({"RATE": (0, 10), "IDLE_DAYS": 0}, []),
        ({"ADDRESS_HEADER": "True-Client-IP"}, []),
        ({"ADDRESS_HEADER": "HTTP_X_FORWARDED_FOR"}, ["readtrack.E058"]),
        ({"ADDRESS_HEADER": ""}, ["readtrack.E058"]),
        ({"TIMEOUT": 2, "FLUSH_INTERVAL": 3600}, []),
        ({"TIMEOUT": 250}, ["readtrack.W053"]),
        ({"TIMEOUT": 50, "FLUSH_INTERVAL": 60_000}, ["readtrack.W053", "readtrack.W053"]),
        ({"FLUSH_INTERVAL": 60_000}, ["readtrack.W053"]),
        ({"FLUSH_INTERVAL": 0.5}, ["readtrack.E002"]),
        ({"DOTS": {"anonymous": 1_000, "readers": "id"}}, ["readtrack.E040"]),
        ({"DOTS": {"readers": "ordinal"}}, []),
    ],
)
def test_a_value_that_cannot_be_used_is_found(
    settings: Settings, options: dict[str, Any], ids: list[str]
) -> None:
    settings.READTRACK = options
    assert found() == ids


@each_row(
    ("path", "script_name", "ids"),
    [
        ("/", None, []),
        ("/", "/shop", []),
        ("/shop", "/shop", []),
        ("/shop/", "/shop/", []),
        ("/shop", "/shop/de", []),
        ("/sho", "/shop", ["readtrack.E056"]),
        ("/forum", "/shop", ["readtrack.E056"]),
        ("", None, ["readtrack.E056"]),
        ("shop", None, ["readtrack.E056"]),
        ("/shop; Secure", None, ["readtrack.E056"]),
        ("/ü", None, ["readtrack.E056"]),
    ],
)
def test_the_cookies_path_has_to_lead_to_the_sites_pages(
    settings: Settings, path: str, script_name: str | None, ids: list[str]
) -> None:
    settings.FORCE_SCRIPT_NAME = script_name
    settings.READTRACK = {"COOKIE": {"path": path}}
    assert found() == ids


@each_row(
    ("domain", "hosts", "ids"),
    [
        ("", ["shop.example"], []),
        ("shop.example", ["www.shop.example", "localhost"], []),
        (".Shop.example", [".shop.example"], []),
        ("shop.example", ["*"], []),
        ("shop.example", [], []),
        ("shop.example", ["bookshop.example"], ["readtrack.E057"]),
        ("www.shop.example", ["shop.example"], ["readtrack.E057"]),
        ("https://shop.example", ["*"], ["readtrack.E057"]),
        ("shop.example:8000", ["*"], ["readtrack.E057"]),
        ("shop.example/de", ["*"], ["readtrack.E057"]),
    ],
)
def test_the_cookies_domain_has_to_have_the_sites_hosts(
    settings: Settings, domain: str, hosts: list[str], ids: list[str]
) -> None:
    settings.ALLOWED_HOSTS = hosts
    settings.READTRACK = {"COOKIE": {"domain": domain}}
    assert found() == ids


def test_a_time_in_milliseconds_is_given_in_seconds(settings: Settings) -> None:
    settings.READTRACK = {"TIMEOUT": 250}
    message = the_message("readtrack.W053")
    assert message.msg == "READTRACK['TIMEOUT'] is 250 seconds, which is very long."
    assert "write 0.25; the default is" in str(message.hint)
