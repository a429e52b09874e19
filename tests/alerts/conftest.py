"""A site with alerts, and a receiver of its webhook."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from tests.alerts.receiver import SECRET, Receiver, receiver

SITE = "https://www.example.com"


@pytest.fixture
def webhook(settings: Settings) -> Iterator[Receiver]:
    """Returns the receiver that ALERTS names."""
    with receiver() as server:
        use_alerts(settings, webhook={"url": server.url, "secret": SECRET})
        yield server


@pytest.fixture
def alerts(settings: Settings) -> None:
    """Turns alerts on, with mails."""
    use_alerts(settings)


def use_alerts(settings: Settings, **values: Any) -> None:
    chosen = {"site": SITE, "mail": ["editor@example.com"], **values}
    settings.READTRACK = {**settings.READTRACK, "ALERTS": chosen}
