"""The setting ALERTS: whom alerts are sent to, and from which numbers on."""

from base64 import b64decode
from binascii import Error
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from math import inf
from typing import Any, Literal, NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from readtrack.conf import cached_setting, conf
from readtrack.numbers.site_address import HOST, parts_of, site_problem

DEFAULTS: Mapping[str, Any] = {
    "site": "",
    "mail": None,
    "webhook": None,
    "story": 5,
    "least": 30,
    "site_fall": 3,
}
Form = Literal["signed", "text"]

FORMS: Sequence[Form] = ("signed", "text")
SECRET = "whsec_"  # noqa: S105 - begins the secrets of Standard Webhooks
FEWEST_BYTES = 24  # of a secret, as Standard Webhooks wants it
MOST_BYTES = 64


class AlertSettings(NamedTuple):
    """The values of ALERTS."""

    # The beginning of addresses, such as https://example.com, or the path of a function that
    # returns it.
    site: str
    mail: Sequence[str] | None  # addresses; None for MANAGERS
    webhook: str  # its address; "" for none
    form: Form  # of what the webhook gets: that of Standard Webhooks, or a text for a chat
    key: bytes  # signs what the webhook gets; b"" for the form "text"
    story: float  # times its usual at which a story is told
    least: int  # views of a story below which it is not told
    site_fall: float  # the site is told at its usual views divided by this


@cached_setting("DEBUG")
def alert_settings() -> AlertSettings:
    """Returns the values of ALERTS. Raises ValueError or TypeError if `problems` has any."""
    values = {**DEFAULTS, **conf.of_part("ALERTS")}
    webhook = values["webhook"] or {"url": ""}
    return AlertSettings(
        site=values["site"],
        mail=values["mail"],
        webhook=webhook["url"],
        form=webhook.get("form", "signed"),
        key=b64decode(webhook.get("secret", SECRET).removeprefix(SECRET)),
        story=values["story"],
        least=values["least"],
        site_fall=values["site_fall"],
    )


@cached_setting("DEBUG")
def problems() -> Sequence[str]:
    """Returns what is wrong with ALERTS. An empty ALERTS is right: there are no alerts."""
    return [*_problems(conf.of_part("ALERTS"))] if conf.of_part("ALERTS") else []


def _problems(given: Mapping[Any, Any]) -> Iterator[str]:
    for key in given:
        if key not in DEFAULTS:
            yield f"{key!r} is none of {', '.join(map(repr, DEFAULTS))}"
    values = {**DEFAULTS, **given}
    problem = site_problem(values["site"])
    if problem:
        yield problem
    if not _is_mail(values["mail"]):
        yield "'mail' is no list of mail addresses"
    if values["webhook"] is not None:
        yield from _problems_of_webhook(values["webhook"])
    yield from _problems_of_numbers(values)


def _problems_of_numbers(values: Mapping[str, Any]) -> Iterator[str]:
    for key in ("story", "site_fall"):
        value = values[key]
        if type(value) not in (int, float) or not 1 < value < inf:
            yield f"{key!r} is no number above 1"
    least = values["least"]
    if type(least) is not int or least < 1:
        yield "'least' is no whole number from 1 up"


def _is_mail(value: Any) -> bool:
    """Returns True for None, and for a list of mail addresses."""
    if value is None:
        return True
    if not isinstance(value, (list, tuple)):
        return False
    try:
        for address in value:
            validate_email(address)
    except ValidationError:
        return False
    return True


def _problems_of_webhook(value: Any) -> Iterator[str]:
    """Yields what is wrong with the webhook. The secret itself is left out, because messages end up
    in logs.
    """
    if not isinstance(value, Mapping) or not {"url"} <= value.keys() <= {"url", "form", "secret"}:
        yield "'webhook' is no dict with 'url', and with 'secret' or 'form'"
        return
    if not _is_safe(value["url"]):
        yield "the 'url' of 'webhook' is no address that begins with https://"
    form = value.get("form", "signed")
    if form not in FORMS:
        yield f"the 'form' of 'webhook' is none of {', '.join(map(repr, FORMS))}"
    elif form == "text":
        if "secret" in value:
            yield "the 'form' of 'webhook' is 'text', which has no 'secret', as nothing is signed"
    elif not _is_secret(value.get("secret")):
        yield (
            f"the 'secret' of 'webhook' is not {SECRET!r} followed by"
            f" {FEWEST_BYTES} to {MOST_BYTES} bytes in base64"
        )


def _is_safe(url: Any) -> bool:
    """Returns True for an address by https; by http only with DEBUG, or on this machine."""
    parts = parts_of(url)
    if parts is None or not HOST.fullmatch(parts.netloc):
        return False
    if parts.scheme == "https":
        return True
    return parts.scheme == "http" and (settings.DEBUG or _is_this_machine(parts.hostname or ""))


def _is_this_machine(host: str) -> bool:
    """Returns True for `localhost` and the addresses of the loopback network."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_secret(value: Any) -> bool:
    if not isinstance(value, str) or not value.startswith(SECRET):
        return False
    try:
        key = b64decode(value.removeprefix(SECRET), validate=True)
    except (Error, ValueError):
        return False
    return FEWEST_BYTES <= len(key) <= MOST_BYTES
