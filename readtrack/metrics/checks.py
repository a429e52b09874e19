"""Checks of the metrics, which the setting METRICS turns on."""

from importlib.util import find_spec

from django.core import checks

from readtrack.conf import conf
from readtrack.metrics import scrapers


def check_setting() -> list[checks.CheckMessage]:
    """Checks that METRICS lets somebody read the metrics."""
    return [
        checks.Error(
            f"READTRACK['METRICS'] cannot be used: {problem}.",
            hint=(
                "Give it 'token': a secret of 16 or more characters, such as"
                " secrets.token_urlsafe() makes; or 'networks': addresses such as '10.0.0.7' or"
                " networks such as '10.0.0.0/8'; or both. Until then nobody may read the metrics."
            ),
            id="readtrack.E072",
        )
        for problem in scrapers.rules().problems
    ]


def check_private_networks() -> list[checks.CheckMessage]:
    """Checks that private networks, in which the site's own proxies may be, are no key by
    themselves.
    """
    if "token" in conf.of_part("METRICS"):
        return []
    private = [str(network) for network in scrapers.rules().networks if network.is_private]
    if not private:
        return []
    return [
        checks.Warning(
            f"READTRACK['METRICS'] has the private network {', '.join(private)} and no 'token', so"
            " everybody may read the metrics who comes through a proxy in it that names no client.",
            hint="Add 'token': a secret of 16 or more characters; or name addresses of no proxy.",
            id="readtrack.W074",
        )
    ]


def check_package() -> list[checks.CheckMessage]:
    """Checks that the package is installed that writes the metrics."""
    if not conf.of_part("METRICS") or find_spec("prometheus_client"):
        return []
    return [
        checks.Error(
            "READTRACK['METRICS'] is set, but the package prometheus-client is not installed.",
            hint="Install it: pip install 'readtrack[metrics]'",
            id="readtrack.E073",
        )
    ]
