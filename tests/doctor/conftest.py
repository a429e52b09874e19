"""Servers of one's own, in whatever state."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from pytest_django import Settings

from readtrack.doctor.examination import examine
from readtrack.doctor.findings import Named
from tests.engines.valkey import Valkey

Start = Callable[..., Valkey]


@pytest.fixture
def start(settings: Settings) -> Iterator[Start]:
    """Starts a server with these directives (`_` for `-`), which readtrack uses from then on."""
    with ExitStack() as stack:

        def start(**config: str) -> Valkey:
            valkey = stack.enter_context(
                Valkey(config={name.replace("_", "-"): value for name, value in config.items()})
            )
            use(settings, valkey.url)
            return valkey

        yield start


def use(settings: Settings, url: str) -> None:
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": url}}


def found(name: str, *, sample: int = 100) -> list[Named]:
    """What one examination found, among all of them."""
    return [finding for finding in examine(sample=sample) if finding.name == name]


def levels(name: str) -> list[str]:
    return [finding.level for finding in found(name)]
