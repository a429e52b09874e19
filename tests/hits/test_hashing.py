"""Digests depend on the secret and on their purpose."""

from pytest_django import Settings

from readtrack.hits.hashing import digest


def test_a_digest_is_short_stable_and_safe_in_keys_and_pages() -> None:
    assert digest("visitor", "user:1") == digest("visitor", "user:1")
    assert len(digest("visitor", "ü:*{}\ud800")) == 16
    assert digest("visitor", "a*b").replace("-", "").replace("_", "").isalnum()


def test_purposes_and_secrets_keep_digests_apart(settings: Settings) -> None:
    found = [digest("visitor", "user:1"), digest("placeholder", "user:1")]
    settings.SECRET_KEY = "another"
    found.append(digest("visitor", "user:1"))
    settings.READTRACK = {"SECRET": "a third"}
    found.append(digest("visitor", "user:1"))
    assert len(set(found)) == 4
