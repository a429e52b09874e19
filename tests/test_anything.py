"""Random requests: no error, no raw byte in a key, and bounded memory."""

import re
from datetime import datetime, timezone
from typing import Any

import pytest
from django.test import Client, RequestFactory
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from readtrack.conf import conf
from readtrack.hits import addresses, bots, visitors
from readtrack.hits.hit import Hit, refusal
from readtrack.store import keys
from readtrack.store.counting import count_views
from readtrack.subjects import subject_of_row
from tests.site.models import Page
from tests.support import factories
from tests.support.depth import examples

KEY = re.compile(r"[A-Za-z0-9:._~%-]+")
LONGEST_KEY = 100

text = st.text(max_size=600)
# What a server passes on of a header: Latin-1 without line breaks.
header = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=900)
address = st.one_of(st.ip_addresses().map(str), header, st.just(""), st.just("::ffff:1.2.3.4"))
headers = st.fixed_dictionaries(
    {},
    optional={
        "HTTP_USER_AGENT": st.one_of(header, st.just(factories.BROWSER)),
        "HTTP_X_FORWARDED_FOR": st.lists(address, max_size=5).map(",".join),
        "HTTP_COOKIE": st.one_of(
            header, header.map("anon_id={}".format), header.map("sessionid={}".format)
        ),
        "HTTP_SEC_GPC": header,
        "HTTP_DNT": header,
        "HTTP_PURPOSE": header,
        "HTTP_SEC_PURPOSE": header,
        "REMOTE_ADDR": address,
    },
)
options = st.fixed_dictionaries(
    {"ANONYMOUS": st.sampled_from(["cookie", "hash", "none"])},
    optional={
        "PROXIES": st.one_of(
            st.integers(0, 3), st.just("auto"), st.lists(st.one_of(address, header), max_size=3)
        ),
        "BOTS": st.fixed_dictionaries(
            {"more": st.lists(text, max_size=3), "people": st.lists(text, max_size=3)}
        ),
        "HONOUR_OPT_OUT": st.booleans(),
    },
)
many = settings(max_examples=examples(60))


@pytest.mark.django_db
@many
@given(headers=headers, chosen=options)
def test_no_request_is_an_error_and_no_key_has_a_raw_byte(
    redis: Redis, settings: Any, headers: dict[str, Any], chosen: dict[str, Any]
) -> None:
    post = factories.post()
    settings.READTRACK = chosen
    for path in (f"/posts/{post.pk}/", "/readtrack/archive/"):
        assert Client().generic("GET", path, **headers).status_code in {200, 204}
    for key in redis.scan_iter("*"):
        assert KEY.fullmatch(key)
        assert len(key) <= LONGEST_KEY


@many
@given(headers=headers)
def test_a_visitor_is_a_short_name(headers: dict[str, Any]) -> None:
    request = RequestFactory().get("/", **headers)
    seen = visitors.visitor(request, None)
    assert all(
        re.fullmatch(r"[\w-]{16}", name, re.ASCII) for name in {seen.id, seen.fallback_id} - {""}
    )
    assert len(addresses.network(*addresses.hops(request.META))) <= 39


@many
@given(agent=text)
def test_agents_are_judged_and_the_memory_for_them_is_bounded(agent: str) -> None:
    request = RequestFactory(headers={}).get("/")
    request.META["HTTP_USER_AGENT"] = agent
    assert refusal(request.method, 200, request.META) in {None, "bot", "agent"}
    for number in range(20):
        bots.reason_of(f"{agent}{number}" * 50)
    info = bots.reason_of.cache_info()  # type: ignore[attr-defined]
    assert info.maxsize is not None
    assert info.currsize <= info.maxsize


@many
@given(pk=text)
def test_an_id_of_a_subject_is_encoded(pk: str) -> None:
    subject = subject_of_row(Page, pk.encode(errors="replace").decode())
    visitor, at = (
        visitors.Visitor("v" * 16, fallback_id="s" * 16),
        datetime(2026, 11, 20, 12, tzinfo=timezone.utc),
    )
    names = count_views(Hit(visitor, at, views=(subject,))).keys
    assert all(KEY.fullmatch(keys.TAG.sub("", name)) for name in names)


def test_the_prefix_is_the_sites_own() -> None:
    assert conf.PREFIX == ""


def _changed(token: str, draw: Any) -> bytes:
    """Returns the token with some of its bytes replaced."""
    changed = bytearray(token.encode())
    for at, byte in draw:
        changed[at % len(changed)] = byte
    return bytes(changed)


body = st.one_of(
    st.binary(max_size=300),
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), max_size=3),
)


@pytest.mark.needs_parts("script")
@pytest.mark.django_db
@many
@given(
    body=body,
    referrer=st.binary(max_size=300),
    headers=headers,
    site=st.one_of(header, st.just("same-origin")),
)
def test_nothing_that_is_sent_to_the_scripts_address_is_an_error_or_makes_up_a_key(
    redis: Redis, body: Any, referrer: bytes, headers: dict[str, Any], site: str
) -> None:
    from readtrack.script.shown import token_of

    post = factories.post()
    token = token_of(f"/posts/|0|0|site.post:{post.pk}|", ())
    sent = body if isinstance(body, bytes) else _changed(token, body)
    is_ours = sent == token.encode() and site == "same-origin"
    redis.flushdb()
    response = Client().generic(
        "POST",
        "/readtrack/page.js",
        sent + b"\n" + referrer,
        "text/plain",
        HTTP_SEC_FETCH_SITE=site,
        **headers,
    )
    assert response.status_code == (200 if is_ours else 403)
    found = [str(key) for key in redis.scan_iter("*")]
    assert is_ours or found == []
    assert all(KEY.fullmatch(key) and len(key) <= LONGEST_KEY for key in found)
