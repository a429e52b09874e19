"""What the settings mean for pages and readers."""

from collections.abc import Iterator

from django.utils.translation import gettext, gettext_noop

from readtrack.conf import conf
from readtrack.doctor.findings import Finding, Order
from readtrack.numerals import exact
from readtrack.store import windows

FEW_WAIT = gettext_noop(
    "Set READTRACK['CIRCUIT'] to some seconds, so that only a few pages wait for a Redis that hangs."
)


def timeouts(order: Order) -> Iterator[Finding]:
    """Whether a dead Redis would hold pages up."""
    times = {"timeout": f"{conf.TIMEOUT:g}", "circuit": f"{conf.CIRCUIT:g}"}
    if conf.TIMEOUT > 1:
        hint = gettext("Set READTRACK['TIMEOUT'] to a quarter of a second or so.")
        yield Finding("warning", gettext("A page waits up to %(timeout)s s for a Redis that hangs.") % times, hint)
    elif conf.CIRCUIT < conf.TIMEOUT:
        yield Finding("warning", gettext("The circuit closes sooner than a page gives up."), gettext(FEW_WAIT))
    else:
        message = gettext("Pages wait at most %(timeout)s s for Redis, then %(circuit)s s not at all.")
        yield Finding("ok", message % times)


def repeats(order: Order) -> Iterator[Finding]:
    """When a visitor's reload counts as another view."""
    message = gettext("A reload counts again after %(seconds)s s.") % {"seconds": exact(conf.WINDOW)}
    if windows.is_compact():
        late = gettext("Compact windows end up to %(seconds)s s late.") % {"seconds": exact(windows.late())}
        message = f"{message} {late}"
    yield Finding("ok", message)
