"""Whether SQL holds what Redis does."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from django.utils.translation import gettext, ngettext

from readtrack import buckets
from readtrack.conf import conf
from readtrack.doctor import findings
from readtrack.doctor.findings import Finding, Order
from readtrack.doctor.flushes import FLUSH, LATE
from readtrack.numerals import exact
from readtrack.sql import epochs, row_counts
from readtrack.sql.runs import last_good
from readtrack.store import counters, scripts, server
from readtrack.store.counters import Total
from readtrack.subjects import rows_by_model

REMEMBERED = timedelta(hours=1)  # that the minute buckets tell views of


def marks(order: Order) -> Iterator[Finding]:
    """Whether counts get their base."""
    found = server.marks()
    words = {"count": exact(found.counts), "time": findings.span(timedelta(seconds=found.oldest))}
    if found.oldest > LATE * conf.FLUSH_INTERVAL:
        message = ngettext(
            "%(count)s count lacks SQL's base, for %(time)s.",
            "%(count)s counts lack SQL's base, the oldest for %(time)s.",
            found.counts,
        )
        yield Finding("warning", message % words, findings.run(FLUSH))
    else:
        message = ngettext(
            "%(count)s count waits for SQL's base, which the next flush gives it.",
            "%(count)s counts wait for SQL's base, which the next flush gives them.",
            found.counts,
        )
        yield Finding("ok", message % words)


def line(order: Order) -> Iterator[Finding]:
    """Whether Redis is the one that SQL followed last."""
    if last_good() is None:
        yield Finding("ok", gettext("Nothing was flushed that Redis could have fallen behind."))
        return
    head = epochs.known()
    if head in scripts.run(counters.epoch(), patient=True):
        yield Finding("ok", gettext("Redis is the one of the last flush."))
    else:
        message = gettext("Redis was emptied, or restored from a snapshot, since the last flush.")
        yield Finding("warning", message, f"{gettext('The next flush merges the two.')} {findings.run(FLUSH)}")


def drift(order: Order) -> Iterator[Finding]:
    """Whether SQL holds what Redis does, but for the views since the last flush."""
    now = buckets.now()
    # Taken first: what is viewed from here on may be in the totals, and is in the buckets then.
    good = last_good()
    if good is None or now - good.began > REMEMBERED:
        yield Finding("note", gettext("No flush in the last hour to compare Redis and SQL by."), findings.run(FLUSH))
        return
    totals = {subject: total for subject, total in server.some_totals(order.sample).items() if total.is_settled}
    off = _off(totals, since=good.began) if totals else []
    words = {"off": exact(len(off)), "count": exact(len(totals)), "some": ", ".join(off[:3])}
    if off:
        message = ngettext(
            "%(off)s of %(count)s totals differs from SQL: %(some)s.",
            "%(off)s of %(count)s totals differ from SQL, such as %(some)s.",
            len(off),
        )
        yield Finding("warning", message % words, findings.run(FLUSH))
    else:
        message = ngettext(
            "%(count)s total compared with SQL: it agrees.",
            "%(count)s totals compared with SQL: they agree.",
            len(totals),
        )
        yield Finding("ok", message % words)


def _off(totals: Mapping[str, Total], *, since: datetime) -> list[str]:
    """Those that SQL holds more of, or less than the views since then explain."""
    stored: dict[str, int] = {}
    for model, rows in rows_by_model(totals).items():
        stored.update((rows[pk], row.views) for pk, row in row_counts.stored(model, list(rows)).items())
    now = buckets.now() + buckets.MINUTE  # the web servers' clocks name the buckets
    minutes = buckets.minute_starts(int((now - since) / buckets.MINUTE) + 2, until=now)
    recent = server.recent(list(totals), minutes=minutes)
    return [subject for subject, count in stored.items() if not 0 <= totals[subject].views - count <= recent[subject]]
