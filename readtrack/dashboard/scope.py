"""A scope: the period and the filters of the dashboard, out of the address. Tables, charts and
exports take it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext_lazy as _

from readtrack import buckets, subjects
from readtrack.conf import conf
from readtrack.hits import dimensions
from readtrack.sql import databases

LONGEST = 4_000  # characters of a value in the address; an object's key may be percent-encoded text
MOMENT = timedelta(microseconds=1)

#: A number is that of the days up to today.
PERIODS: Mapping[str, Any] = {
    "today": _("Today"),
    "yesterday": _("Yesterday"),
    "7": _("7 days"),
    "28": _("28 days"),
    "90": _("90 days"),
    "month": _("This month"),
    "year": _("This year"),
    "all": _("All time"),
}
FILTERS = ("model", "object", "category", "author")
OTHERS = ("period", "from", "to", "tab", "table", "format")


class Span(NamedTuple):
    """A period: its start, and its end (both aware, the end exclusive)."""

    since: datetime
    until: datetime

    @property
    def hours(self) -> range:
        """Returns the hours (since 1970) from the first whole one to the last that begins before
        the end.

        An hour in two days (half-hour zones) is in the earlier one.
        """
        first, last = (
            buckets.hour_index(at)
            for at in (self.since + buckets.HOUR - MOMENT, self.until - MOMENT)
        )
        return range(first, max(first, last) + 1 if self.since < self.until else first)

    def starts(self, by: buckets.Period) -> list[datetime]:
        """Returns the local starts of the hours, days, weeks or months that make up the period."""
        first = (
            max(self.since, buckets.hour_start(self.hours.start)) if by == "hour" else self.since
        )
        starts = (
            buckets.period_starts(first, max(self.until, first + MOMENT), by=by)
            if self.hours
            else []
        )
        return [max(start, self.since) for start in starts]

    def first_hours(self, by: buckets.Period) -> list[int]:
        """Returns the first hour of each start. An hour in two periods (half-hour zones) is in the
        earlier one.
        """
        rest = [
            buckets.hour_index(start + buckets.HOUR - buckets.MINUTE)
            for start in self.starts(by)[1:]
        ]
        return [self.hours.start, *rest]


@dataclass(frozen=True)
class Scope:
    """A period, the period before it, and filters. What is no valid choice is left out, so it never
    raises.
    """

    period: str
    span: Span
    before: Span | None  # as long as the period has lasted until now; None for all time
    chosen: Mapping[str, str]  # the filters: FILTERS, and dimensions by name
    fixed: Mapping[str, str] = field(
        default_factory=dict
    )  # those that the page has by itself, which are in no address

    @classmethod
    def parse(
        cls, given: Mapping[str, Any], *, fixed: Mapping[str, str] = {}, at: datetime | None = None
    ) -> "Scope":
        """Returns the scope of the address's parameters. `fixed` filters come before those of the
        address.

        A page with fixed filters takes no other author and no category, whose names it would tell;
        an object's page takes no filter at all.
        """
        names = (*FILTERS, *dimension_names())
        left_out = names if "object" in fixed else ("author", "category") if fixed else ()
        found = {
            name: str(given.get(name, ""))[:LONGEST].replace("\0", "") for name in (*names, *OTHERS)
        }
        asked = {name: found[name] for name in names if name not in left_out and found[name]}
        chosen = {name: value for name, value in asked.items() if _is_valid(name, value)}
        now = timezone.localtime(buckets.now(at))
        days = sorted(day for name in ("from", "to") if (day := _day(found[name], now.date())))
        default = "range" if len(days) == 2 and not found["period"] else "7"
        period = found["period"] if found["period"] in PERIODS else default
        if parsed := subjects.parse_subject(chosen.get("object", "")):
            chosen["object"] = subjects.subject_of_row(*parsed)  # the one name of what has several
        return cls(period, *_spans(period, now, days or [now.date()]), {**chosen, **fixed}, fixed)

    @property
    def by(self) -> buckets.Period:
        """Returns the length of a point of the chart: of at most some hundred points."""
        days = (
            self.span.until - self.span.since - buckets.HOUR
        ) / buckets.DAY  # a day of 25 hours is one
        return "hour" if days <= 1 else "day" if days < 100 else "week" if days < 750 else "month"

    @property
    def is_present(self) -> bool:
        """Returns True if the period goes up to now, so that what is not flushed belongs into it."""
        return self.span.until + buckets.MINUTE > buckets.now()

    @property
    def is_listed(self) -> bool:
        """Returns True if the filters name rows, whose numbers are added up; False for whole
        models.
        """
        return any(self.chosen.get(name) for name in ("object", "category", "author"))

    @property
    def values(self) -> dict[str, str]:
        """Returns the chosen values of dimensions."""
        return {name: value for name, value in self.chosen.items() if name not in FILTERS}

    @property
    def models(self) -> list[type[Model]]:
        """Returns the counted models that the filters leave."""
        parsed = subjects.parse_subject(self.chosen.get("object", ""))
        found = [subjects.owner(parsed[0])] if parsed else subjects.counted_models()
        if "model" in self.chosen:
            found = [model for model in found if subjects.label_of(model) == self.chosen["model"]]
        return [
            model for model in found if not self.is_listed or self._conditions(model) is not None
        ]

    def rows(self, model: type[Model]) -> "QuerySet[Any]":
        """Returns the rows of one of the models that the filters leave."""
        # Where they are written, as history is, because replicas lag.
        rows: QuerySet[Any] = model._default_manager.using(databases.of(model).alias)
        conditions = self._conditions(model)
        return rows.none() if conditions is None else rows.filter(conditions)

    def _conditions(self, model: Any) -> Q | None:
        """Returns the condition of the filters; None for a model that lacks the field for one of
        them.
        """
        parsed = subjects.parse_subject(self.chosen.get("object", ""))
        found = Q(pk=parsed[1]) if parsed else Q()
        if "category" in self.chosen:
            target, pk = subjects.parse_subject(self.chosen["category"]) or (None, None)
            owners = {
                link.name: subjects.owner(link.related_model) for link in subjects.news_links(model)
            }
            links = [name for name, owner in owners.items() if target and issubclass(target, owner)]
            if not links:
                return None
            # In subqueries, because a link to many would give a row more than once.
            linked = (
                model._default_manager.filter(**{f"{link}__pk": pk}).values("pk") for link in links
            )
            found &= reduce(or_, (Q(pk__in=rows) for rows in linked))
        if "author" in self.chosen:
            field = subjects.author_field(model)
            if field is None:
                return None
            found &= Q(**{f"{field.name}__pk": self.chosen["author"]})
        return found

    def address(self, **changes: str) -> str:
        """Returns the query string of this scope with changes; an empty value takes a filter away."""
        period = {} if "period" in changes else {"period": self.period}
        if period.get("period") == "range":
            period = {
                "from": f"{self.span.since:%Y-%m-%d}",
                "to": f"{self.span.until - MOMENT:%Y-%m-%d}",
            }
        named = {name: value for name, value in self.chosen.items() if name not in self.fixed}
        return "?" + urlencode(
            {name: value for name, value in {**period, **named, **changes}.items() if value}
        )


def dimension_names() -> list[str]:
    """Returns the names of the site's dimensions that can be filters; sources come first."""
    names = [
        name for name in map(dimensions.name_of, conf.DIMENSIONS) if name not in (*FILTERS, *OTHERS)
    ]
    return sorted(names, key=lambda name: name != "referrer")


def _is_valid(name: str, value: str) -> bool:
    """Returns True for a choice; databases fail at a whole number that is too big for a key."""
    if name == "model":
        return value in map(subjects.label_of, subjects.counted_models())
    if name not in FILTERS:
        return True
    model, pk = (
        (get_user_model(), value)
        if name == "author"
        else subjects.parse_subject(value) or (None, "")
    )
    may_be = {"object": subjects.is_counted, "category": subjects.has_read_state}.get(name)
    if model is None or (may_be and not may_be(model)):
        return False
    try:
        key = model._meta.pk.to_python(pk)
    except ValidationError:
        return False
    return abs(key) < 2**63 if isinstance(key, int) else "\0" not in str(key)


def _day(text: str, today: date) -> date | None:
    try:
        found = parse_date(text)
    except ValueError:  # the 31st of a shorter month
        return None
    return min(max(found, date(1990, 1, 1)), today) if found else None


def _spans(period: str, now: datetime, days: Sequence[date]) -> tuple[Span, Span | None]:
    """Returns the period (a range has two days), and the one before it for as long as the period
    has lasted.
    """
    today = now.date()
    month, year = today.replace(day=1), today.replace(month=1, day=1)
    last = {"yesterday": today - buckets.DAY, "range": days[-1]}.get(period, today)
    length = int(period) if period.isdigit() else 1
    begin = {"month": month, "year": year, "range": days[0]}.get(
        period, last - (length - 1) * buckets.DAY
    )
    span = Span(buckets.day_start(begin), min(buckets.day_start(last + buckets.DAY), now))
    if period == "all":
        return span, None
    earlier = {
        "month": (month - buckets.DAY).replace(day=1),
        "year": year.replace(year=year.year - 1),
    }
    start = earlier.get(period, begin - (last - begin + buckets.DAY))
    # Whole days and the time of the running one, so that a change of the clock is no hour more or
    # less.
    whole = (span.until.date() - begin).days
    until = buckets.day_start(start + whole * buckets.DAY) + (
        span.until - buckets.day_start(span.until.date())
    )
    # To the nearest hour, because a whole hour is no match for the first minutes of the running
    # one.
    until = buckets.hour_start(buckets.hour_index(until + buckets.HOUR / 2)).astimezone(
        span.since.tzinfo
    )
    return span, Span(
        buckets.day_start(start), max(buckets.day_start(start), min(until, span.since))
    )
