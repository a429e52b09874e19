"""The scope: a period and filters, out of the address of a page or the parameters of a question.

All tables, charts and exports are made for a scope.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.db.models import Model, Q, QuerySet
from django.utils.dateparse import parse_date
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from readtrack import buckets, subjects
from readtrack.numbers import dimensions, local_time
from readtrack.sql import databases

LONGEST = 4_000  # characters of a value in the address; an object's key may be percent-encoded text
LONGEST_DAY = 26  # hours, where clocks go back by two
DEFAULT_PERIOD = "7"

#: The periods by their names in the address. A number is the number of days up to today. Weeks are
#: those from Monday to Sunday.
PERIODS: Mapping[str, Any] = {
    "today": _("Today"),
    "yesterday": _("Yesterday"),
    "week": _("This week"),
    "last-week": _("Last week"),
    "7": _("7 days"),
    "28": _("28 days"),
    "90": _("90 days"),
    "month": _("This month"),
    "year": _("This year"),
    "all": _("All time"),
}
WEEKS = ("week", "last-week")
PUBLISHED = "published"  # the period of an object's page that begins at its publication
SINCE_PUBLICATION = {PUBLISHED: _("Since publication")}
HOURS_OF_NEWS = 7 * 24  # since publication that are shown by the hour
#: What a period is compared with, by the names in the address.
COMPARISONS: Mapping[str, Any] = {
    "before": _("The period before"),
    "week": _("A week earlier"),
    "year": _("A year earlier"),
    "none": pgettext_lazy("compared with", "Nothing"),
}
RIGHT_BEFORE = "before"
A_WEEK_EARLIER = "week"
NEARBY = (RIGHT_BEFORE, A_WEEK_EARLIER)
OF_DAYS = ("today", "yesterday", "range")  # periods that may be a single day
#: The lengths of a point of the chart by their names in the address. "" goes by the period.
INTERVALS: Mapping[str, Any] = {
    "": pgettext_lazy("interval", "Automatic"),
    "hour": pgettext_lazy("interval", "Hour"),
    "day": pgettext_lazy("interval", "Day"),
    "week": pgettext_lazy("interval", "Week"),
    "month": pgettext_lazy("interval", "Month"),
}
#: The average hours of an interval.
HOURS: Mapping[local_time.Period, int] = {"hour": 1, "day": 24, "week": 7 * 24, "month": 730}
MOST_POINTS = 400  # of an interval that the address chooses: a year of days, 16 days of hours
# Each of a category's or of an author's objects, up to MOST of them, has its own points.
MOST_POINTS_OF_MANY = 110
FILTERS = ("model", "object", "category", "author")
OTHER_PARAMETERS = (
    "period",
    "from",
    "to",
    "back",
    "compare",
    "by",
    "tab",
    "series",
    "table",
    "format",
    "q",
    "order",
    "dir",
    "rows",
    "group",
)


DayBefore = Callable[[date], date]


class Days(NamedTuple):
    """The local days of a period: its first and its last one."""

    first: date
    last: date

    @property
    def length(self) -> timedelta:
        """The time from the start of the first day until the end of the last one."""
        return self.last - self.first + buckets.DAY

    @property
    def is_single(self) -> bool:
        """Returns True for one day."""
        return self.first == self.last

    @property
    def is_month(self) -> bool:
        """Returns True if the days are those of a month of the calendar."""
        return self.first.day == 1 and self.last == local_time.last_of_month(self.first)

    @property
    def is_year(self) -> bool:
        """Returns True if the days are those of a year of the calendar."""
        return self == Days(date(self.first.year, 1, 1), date(self.first.year, 12, 31))


class Span(NamedTuple):
    """A period: its start, and its end (both aware UTC, the end exclusive)."""

    since: datetime
    until: datetime

    @property
    def hours(self) -> range:
        """Returns the hours (since 1970) of the period, from its first whole hour on.

        The last hour begins before the end of the period. Where days begin within an hour, the hour
        is in the earlier day.
        """
        hours = local_time.hours_between(self.since, self.until)
        if not hours and self.since < self.until:
            return range(hours.start, hours.start + 1)  # the first minutes of today
        return hours

    @property
    def first_day(self) -> date:
        """Returns the first local day of the period."""
        return local_time.day_of(self.since)

    @property
    def last_day(self) -> date:
        """Returns the last local day of the period."""
        return local_time.last_day_of(self.since, self.until)

    @property
    def days(self) -> Days:
        """Returns the local days of the period."""
        return Days(self.first_day, self.last_day)

    def starts(self, by: local_time.Period) -> list[datetime]:
        """Returns the starts of the hours, days, weeks or months that make up the period."""
        if not self.hours:
            return []
        first = self.since
        if by == "hour":
            first = max(first, buckets.hour_start(self.hours.start))
        starts = local_time.period_starts(first, max(self.until, first + local_time.MOMENT), by=by)
        return [max(start, self.since) for start in starts]

    def first_hours(self, by: local_time.Period) -> list[int]:
        """Returns the first hour (since 1970) of each of the `starts`."""
        hours = [local_time.first_hour_from(start) for start in self.starts(by)[1:]]
        return [self.hours.start, *hours]


@dataclass(frozen=True)
class Scope:
    """A period, the one that it is compared with, and filters.

    An invalid choice of the address is left out, so that no address raises an error.
    """

    period: str  # a key of `periods`, or "range" for two days of the address
    span: Span
    # The period that `compared` is compared with. None for all time and since publication, and
    # where the address wants no comparison.
    before: Span | None
    chosen: Mapping[str, str]  # the values of filters by name: FILTERS and dimensions
    # Those of the filters that the page sets by itself. Addresses do not contain them.
    fixed: Mapping[str, str] = field(default_factory=dict)
    # The part of the period that is compared: the days that are over, or the hours of today alone.
    compared: Span | None = None
    is_future: bool = False  # the address gives days in the future, and today is taken instead
    # A key of COMPARISONS, as the address has it, or "" for the one by default; see `comparison`.
    compare: str = ""
    asked_by: str = ""  # a key of INTERVALS, as the address has it; see `interval`
    published: datetime | None = None  # when the object of the page was published, if it is known
    # The period of the page that led to the one of an object since its publication; "" if none did.
    period_before: str = ""

    @classmethod
    def parse(
        cls,
        given: Mapping[str, Any],
        *,
        fixed: Mapping[str, str] = {},
        published: datetime | None = None,
        at: datetime | None = None,
    ) -> "Scope":
        """Returns the scope of an address, whose parameters are `given`.

        The `fixed` filters replace those of the address. A page with fixed filters takes no other
        author and no category from the address, because it would show their names; an object's page
        takes only values of dimensions. The page of an object that was `published` begins there,
        unless the address has another period.
        """
        parameters = (*FILTERS, *dimension_names(), *OTHER_PARAMETERS)
        texts = {parameter: _text(given, parameter) for parameter in parameters}
        chosen = _chosen(texts, fixed)
        now = buckets.now(at)
        today = local_time.day_of(now)
        asked_days = _days(texts)
        if published and published > now:
            published = None
        is_range = len(asked_days) == 2
        period = _period(texts["period"], is_range=is_range, is_published=bool(published))
        days = [min(day, today) for day in asked_days]
        span = _span(period, now, days or [today])
        if published and period == PUBLISHED:
            hour_of_publication = buckets.hour_start(buckets.hour_index(published))
            span = span._replace(since=hour_of_publication)
        compare = _choice(texts["compare"], COMPARISONS, default="")
        scope = cls(
            period=period,
            span=span,
            before=None,
            chosen={**chosen, **fixed},
            fixed=fixed,
            is_future=period == "range" and asked_days[0] > today,
            compare=compare,
            asked_by=_choice(texts["by"], INTERVALS, default=""),
            published=published,
            period_before=_choice(texts["back"], PERIODS, default=""),
        )
        return scope._comparing_until(now)

    def _comparing_until(self, now: datetime) -> "Scope":
        """Returns the scope that compares its period, as far as that can be compared now.

        Days that are over are compared, so that all numbers of a page are compared alike: visitors
        are known by the day only. Today alone is compared up to the last whole hour.
        """
        if self.period in ("all", PUBLISHED) or self.comparison == "none":
            return self
        return self._comparing(_compared_part(self.span, now=now))

    def _comparing(self, compared: Span) -> "Scope":
        """Returns the scope that compares this part of its period."""
        before = _span_before(self.span, compared, self.day_before)
        return replace(self, compared=compared, before=before)

    @property
    def day_before(self) -> "DayBefore":
        """Returns the function that returns the day that a day of the period is compared with."""
        return _day_before(self.period, self.span, comparison=self.comparison)

    @property
    def is_compared(self) -> bool:
        """Returns True if numbers of the period are compared with those of another one."""
        if self.before is None or not self.before.hours:
            return False
        return self.compares_days or not self.has_days_only

    @property
    def is_compared_nearby(self) -> bool:
        """Returns True if the period before is the one right before, or a week earlier.

        Where nothing was viewed then, nothing was viewed, if history goes back so far. Further back
        it may have a gap, because a site may have imported the counts of earlier years.
        """
        return self.is_compared and self.comparison in NEARBY

    def had_time_before(self, published: datetime | None) -> bool:
        """Returns True if an object that was `published` then could be viewed in all of the period
        before, so that its views are known to have grown; also if nobody knows when it was.
        """
        return published is None or self.before is None or published <= self.before.since

    @property
    def compares_days(self) -> bool:
        """Returns True if the compared part of the period consists of whole days."""
        if self.compared is None or self.compared.since == self.compared.until:
            return False
        end = self.compared.until
        return end == local_time.day_start(local_time.day_of(end))

    @property
    def first_hour_not_compared(self) -> int | None:
        """Returns the first hour (since 1970) of the period that is not compared; None without
        one.
        """
        if self.compared is None or self.compared.until == self.span.until:
            return None
        return self.compared.hours.stop

    def hours_beside(self) -> list[range]:
        """Returns the hours of the period before that stand beside each point of the period.

        They are empty beside a point that is not compared, and beside an hour that clocks skipped
        then. Weeks stand beside weeks also a year ago.
        """
        if self.before is None or self.compared is None:
            return []
        day_before = self.day_before
        limit = self.before.until
        if self.by == "week" and self.comparison == "year":
            day_before = _same_weekday
            limit = self.span.since
        starts = self.span.starts(self.by)
        beside = []
        for start, end in pairwise([*starts, self.span.until]):
            part = Span(start, min(end, self.compared.until))
            hours = range(0)
            if part.since < part.until:
                hours = _beside(part, day_before, by=self.by, limit=limit)
            beside.append(hours)
        return beside

    @property
    def periods(self) -> Mapping[str, Any]:
        """Returns the periods that can be chosen, by their names in the address."""
        return PERIODS if self.published is None else {**SINCE_PUBLICATION, **PERIODS}

    def address_beside(self, steps: int, **changes: str) -> str:
        """Returns the query string for the period that many steps later, or earlier if it is below
        0.

        It is as long, or a month or a year of the calendar if this one is. It is "" for a period in
        the future, and beside one without a length of its own.
        """
        if self.period in ("all", PUBLISHED):
            return ""
        days = _days_beside(self.period, self.span, steps=steps)
        today = local_time.day_of(buckets.now())
        if days.first > today or days.first < local_time.FIRST_DAY:
            return ""
        if days != Days(today, today):
            for period in (*WEEKS, "month", "year"):
                # By its name, so that the way back is as long.
                span = _span(period, buckets.now(), [today])
                if days == _days_beside(period, span, steps=0):
                    return self.address(period=period, **changes)
        first = days.first.isoformat()
        last = min(days.last, today).isoformat()
        return self.address(period="", **{"from": first, "to": last}, **changes)

    @property
    def is_all_time(self) -> bool:
        """Returns True if the period has no first day of its own, but that of history."""
        return self.period == "all"

    @property
    def comparisons(self) -> list[str]:
        """Returns the keys of COMPARISONS that can be chosen for the period."""
        return _comparisons(self.period, self.span)

    @property
    def comparison(self) -> str:
        """Returns the key of what the period is compared with.

        The address keeps a comparison that another period has and this one has not.
        """
        return self.compare if self.compare in self.comparisons else self.default_comparison

    @property
    def default_comparison(self) -> str:
        """Returns the key of what the period is compared with if the address does not say it.

        A single day stands beside the same day of the week before, because a Sunday says nothing
        of a Monday. On the page of an object that was not published by then, it stands beside the
        day right before, because all views of the object would be more than before.
        """
        if not (self.period in OF_DAYS and self.span.days.is_single):
            return RIGHT_BEFORE
        week_earlier = local_time.day_start(self.span.first_day - buckets.WEEK)
        if self.published is not None and self.published > week_earlier:
            return RIGHT_BEFORE
        return A_WEEK_EARLIER

    @property
    def intervals(self) -> list[local_time.Period]:
        """Returns the lengths of a point that can be chosen, because they make a fit chart.

        It has two points at least. There is a limit to the points because each object of a table
        has a number at each point, too.
        """
        has_many_objects = bool(self.chosen.keys() & {"category", "author"})
        most_points = MOST_POINTS_OF_MANY if has_many_objects else MOST_POINTS
        hours_of_period = len(self.span.hours)
        return [
            by
            for by, hours in HOURS.items()
            if 1 < hours_of_period / hours <= most_points
            if not (by == "hour" and self.has_days_only)
        ]

    @property
    def interval(self) -> str:
        """Returns the chosen length of a point, a key of INTERVALS.

        The address keeps a length that another period can have and this one cannot.
        """
        return self.asked_by if self.asked_by in self.intervals else ""

    @property
    def by(self) -> local_time.Period:
        """Returns the length of one point of the chart.

        If the address does not choose one, it is the longer, the longer the period is.
        """
        for by in self.intervals:
            if by == self.asked_by:
                return by
        if self.has_days_only and self.is_of_a_day:
            return "day"
        if self._has_hours_of_news:
            return "hour"
        if self.is_of_a_day:
            return "hour"
        # An hour less, because days on which clocks go back have one more.
        days = (self.span.until - self.span.since - buckets.HOUR) / buckets.DAY
        if days < 100:
            return "day"
        if days < 750:
            return "week"
        return "month"

    @property
    def _has_hours_of_news(self) -> bool:
        """Returns True if an object is so new that it is shown by the hour since its
        publication.
        """
        is_new = self.period == PUBLISHED and len(self.span.hours) <= HOURS_OF_NEWS
        return is_new and not self.has_days_only

    @property
    def is_present(self) -> bool:
        """Returns True if the period goes up to now, so that it includes what is not flushed."""
        return self.span.until + buckets.MINUTE > buckets.now()

    @property
    def is_of_a_day(self) -> bool:
        """Returns True if the period is a day or a part of one."""
        return len(self.span.hours) <= LONGEST_DAY

    @property
    def is_listed(self) -> bool:
        """Returns True if filters name single rows, whose numbers are added up.

        It is False if the numbers are those of whole models.
        """
        return any(self.chosen.get(name) for name in ("object", "category", "author"))

    @property
    def is_part(self) -> bool:
        """Returns True if a filter leaves out some of the site's views."""
        return bool(self.chosen)

    @property
    def values(self) -> dict[str, str]:
        """Returns the chosen values of dimensions."""
        return {name: value for name, value in self.chosen.items() if name not in FILTERS}

    @property
    def has_days_only(self) -> bool:
        """Returns True if the numbers are not known by the hour: those of objects by value."""
        return self.is_listed and bool(self.values)

    @property
    def is_joint(self) -> bool:
        """Returns True if several values of dimensions are chosen, which are not counted
        together.
        """
        return len(self.values) > 1

    @property
    def models(self) -> list[type[Model]]:
        """Returns the counted models that have rows for the filters."""
        models = subjects.counted_models()
        parsed = subjects.parse_subject(self.chosen.get("object", ""))
        if parsed:
            model, _ = parsed
            models = [subjects.owner(model)]
        if "model" in self.chosen:
            models = [model for model in models if subjects.label_of(model) == self.chosen["model"]]
        if not self.is_listed:
            return models
        return [model for model in models if self._conditions(model) is not None]

    def rows(self, model: type[Model]) -> "QuerySet[Any]":
        """Returns the rows of a model that fit the filters."""
        # From the database that is written to, where history is as well: replicas lag.
        rows: QuerySet[Any] = model._default_manager.using(databases.of(model).alias)
        conditions = self._conditions(model)
        return rows.none() if conditions is None else rows.filter(conditions)

    def _conditions(self, model: Any) -> Q | None:
        """Returns the filters as a condition on the model's rows.

        It is None for a model that lacks a field for one of the filters.
        """
        condition = Q()
        parsed = subjects.parse_subject(self.chosen.get("object", ""))
        if parsed:
            _, pk = parsed
            condition = Q(pk=pk)
        if "category" in self.chosen:
            of_category = self._category_condition(model)
            if of_category is None:
                return None
            condition &= of_category
        if "author" in self.chosen:
            of_author = self._author_condition(model)
            if of_author is None:
                return None
            condition &= of_author
        return condition

    def _category_condition(self, model: Any) -> Q | None:
        """Returns the condition for a link to the chosen category; None without such a link."""
        category, pk = subjects.parse_subject(self.chosen["category"]) or (Model, None)
        links = [
            link.name
            for link in subjects.news_links(model)
            if issubclass(category, subjects.owner(link.related_model))
        ]
        if not links:
            return None
        # In subqueries, because a link to many would give a row more than once.
        condition = Q()
        for link in links:
            rows = model._default_manager.filter(**{f"{link}__pk": pk}).values("pk")
            condition |= Q(pk__in=rows)
        return condition

    def _author_condition(self, model: Any) -> Q | None:
        """Returns the condition for the chosen author; None for a model without authors."""
        field = subjects.author_field(model)
        if field is None:
            return None
        return Q(**{f"{field.name}__pk": self.chosen["author"]})

    def takes(self, *filter_names: str) -> bool:
        """Returns True if the page takes these filters of its address."""
        return {*filter_names} <= {*_accepted(self.fixed)}

    def address(self, **changes: str) -> str:
        """Returns the query string of this scope with changed parameters.

        An empty value removes a parameter.
        """
        filters = {name: value for name, value in self.chosen.items() if name not in self.fixed}
        parameters = {**filters, **self._looks_parameters(), **changes}
        if "period" not in changes:  # otherwise without the two days of a range
            parameters = {**self._period_parameters(), **parameters}
        elif changes["period"] == PUBLISHED:
            parameters = {"back": self._period_of_many(), **parameters}
        return "?" + urlencode({name: value for name, value in parameters.items() if value})

    def address_of_many(self, **changes: str) -> str:
        """Returns the query string for a page of many objects, with changed parameters.

        It has the period and the values of dimensions of this scope. A page of many objects has no
        period since a publication, so it gets the one of the page that led here.
        """
        if self.period == PUBLISHED:
            changes = {"period": self._period_of_many(), **changes}
        return self.address(**changes)

    def address_of_object(self, published: datetime | None, **changes: str) -> str:
        """Returns the query string for the page of an object that was `published` then.

        It has the period and the values of dimensions of this scope. An object that was not there
        for all of a period up to now is shown since its publication.
        """
        kept = {name: "" for name in FILTERS if name in self.chosen}
        is_named = self.period != "range"  # two days of the address are meant as they are
        if published and is_named and self.is_present and published >= self.span.since:
            kept["period"] = PUBLISHED
        return self.address(**kept, **changes)

    def _period_of_many(self) -> str:
        """Returns the period of the page of many objects that leads here or is led to.

        It is "" for two days of the address, and where no page led to one since a publication.
        """
        if self.period == PUBLISHED:
            return self.period_before
        return "" if self.period == "range" else self.period

    def _looks_parameters(self) -> dict[str, str]:
        """Returns the parameters of the address that say how the period is looked at."""
        return {"compare": self.compare, "by": self.asked_by}

    def _period_parameters(self) -> dict[str, str]:
        """Returns the parameters of the address that stand for the period."""
        if self.period == PUBLISHED:
            return {"period": PUBLISHED, "back": self._period_of_many()}
        if self.period != "range":
            return {"period": self.period}
        return {"from": self.span.first_day.isoformat(), "to": self.span.last_day.isoformat()}


def dimension_names() -> list[str]:
    """Returns the names of the site's dimensions that can be filters; sources come first.

    A dimension that is called like another parameter of the address cannot be a filter.
    """
    names_of_parameters = (*FILTERS, *OTHER_PARAMETERS)
    filters = [name for name in dimensions.names() if name not in names_of_parameters]
    return sorted(filters, key=lambda name: name != "referrer")


def _text(given: Mapping[str, Any], parameter: str) -> str:
    """Returns a value of the address, no longer than any valid value is."""
    return str(given.get(parameter, ""))[:LONGEST].replace("\0", "")


def _accepted(fixed: Mapping[str, str]) -> list[str]:
    """Returns the names of the filters that a page with these fixed filters takes of the
    address.
    """
    accepted = [*FILTERS, *dimension_names()]
    if "object" in fixed:
        return [*dimension_names()]
    if fixed:
        return [name for name in accepted if name not in ("author", "category")]
    return accepted


def _chosen(texts: Mapping[str, str], fixed: Mapping[str, str]) -> dict[str, str]:
    """Returns the valid filters of the address, without those that the page does not take."""
    chosen = {}
    for name in _accepted(fixed):
        if texts[name] and _is_valid(name, texts[name]):
            chosen[name] = texts[name]
    parsed = subjects.parse_subject(chosen.get("object", ""))
    if parsed:
        # An address may write a subject in several ways, such as with the label of a child.
        chosen["object"] = subjects.subject_of_row(*parsed)
    return chosen


def _period(asked: str, *, is_range: bool, is_published: bool) -> str:
    """Returns the period that the address asks for, or else the default one of the page."""
    if is_range and not asked:
        return "range"
    if is_published and asked in ("", PUBLISHED):
        return PUBLISHED
    return _choice(asked, PERIODS, default=DEFAULT_PERIOD)


def _choice(asked: str, choices: Mapping[str, Any], *, default: str) -> str:
    return asked if asked in choices else default


def _days(texts: Mapping[str, str]) -> list[date]:
    """Returns the valid days of the address, none to two, the earlier one first."""
    days = [_day(texts["from"]), _day(texts["to"])]
    return sorted(day for day in days if day)


def _is_valid(filter_name: str, value: str) -> bool:
    """Returns True for a value that the filter can have."""
    if filter_name == "model":
        return value in map(subjects.label_of, subjects.counted_models())
    if filter_name not in FILTERS:  # a dimension, which may have any value
        return True
    if filter_name == "author":
        return subjects.may_be_key(get_user_model(), value)
    parsed = subjects.parse_subject(value)
    if parsed is None:
        return False
    model, pk = parsed
    can_be_chosen = subjects.has_read_state
    if filter_name == "object":
        can_be_chosen = subjects.is_counted
    return can_be_chosen(model) and subjects.may_be_key(model, pk)


def _day(text: str) -> date | None:
    """Returns the day of a text, local_time.FIRST_DAY or a later one; None for another text."""
    try:
        day = parse_date(text)
    except ValueError:  # the 31st of a shorter month
        return None
    if day is None:
        return None
    return max(day, local_time.FIRST_DAY)


def _span(period: str, now: datetime, days: Sequence[date]) -> Span:
    """Returns the period; that of all time is today.

    `days` are the first and the last day of a range. Other periods do not look at them.
    """
    today = local_time.day_of(now)
    monday = local_time.first_day(today, by="week")
    last_days = {
        "yesterday": today - buckets.DAY,
        "last-week": monday - buckets.DAY,
        "range": days[-1],
    }
    last_day = last_days.get(period, today)
    length = int(period) if period.isdigit() else 1  # days
    first_days = {
        "week": monday,
        "last-week": monday - buckets.WEEK,
        "month": today.replace(day=1),
        "year": today.replace(month=1, day=1),
        "range": days[0],
    }
    first_day = first_days.get(period, last_day - (length - 1) * buckets.DAY)
    end_of_last_day = local_time.day_start(last_day + buckets.DAY)
    return Span(local_time.day_start(first_day), min(end_of_last_day, now))


def _days_beside(period: str, span: Span, *, steps: int) -> Days:
    """Returns the days of the period that many steps later, at most one."""
    days = span.days
    if period == "year" or days.is_year:
        year = days.first.year + steps
        return Days(date(year, 1, 1), date(year, 12, 31))
    if period == "month" or days.is_month:
        months = {-1: local_time.month_before(days.first), 1: local_time.month_after(days.first)}
        month = months.get(steps, days.first)
        return Days(month, local_time.last_of_month(month))
    length = buckets.WEEK if period in WEEKS else days.length
    first = days.first + steps * length
    return Days(first, first + length - buckets.DAY)


def _comparisons(period: str, span: Span) -> list[str]:
    """Returns the keys of COMPARISONS that a period can have, without those that overlap it."""
    if period in ("all", PUBLISHED):
        return []
    days = span.days
    comparisons = [RIGHT_BEFORE]
    # Of a week of the calendar, the period before is the one a week earlier.
    if days.length <= buckets.WEEK and period not in WEEKS:
        comparisons.append(A_WEEK_EARLIER)
    if local_time.year_before(days.last) < days.first:
        comparisons.append("year")
    return [*comparisons, "none"]


def _compared_part(span: Span, *, now: datetime) -> Span:
    """Returns the part of a period that is compared: without today, which is not over.

    Of today alone it is the part up to the running hour. Numbers are kept by the hour, so the
    period before can be cut at a whole hour only.
    """
    if span.until < now:
        return span
    if span.first_day < span.last_day:
        return span._replace(until=local_time.day_start(span.last_day))
    running_hour = buckets.hour_start(buckets.hour_index(now))
    return span._replace(until=max(span.since, running_hour))


def _day_before(period: str, span: Span, *, comparison: str) -> DayBefore:
    """Returns the function that returns the day beside a day of the period."""
    if comparison == "week" or period in WEEKS:
        return lambda day: day - buckets.WEEK
    if comparison == "year" or period == "year":
        return local_time.year_before
    first_day = span.first_day
    if period == "month":
        first_day_before = local_time.month_before(first_day)
    else:  # periods of a number of days follow one another without a gap
        first_day_before = first_day - (span.last_day - first_day + buckets.DAY)
    return lambda day: first_day_before + (day - first_day)


def _same_weekday(day: date) -> date:
    return day - local_time.YEAR_OF_WEEKS


def _beside(part: Span, day_before: DayBefore, *, by: local_time.Period, limit: datetime) -> range:
    """Returns the hours of the period before, none after the limit, beside a part of a point."""
    since = local_time.same_clock(part.since, day=day_before(local_time.day_of(part.since)))
    until = _end_before(part.until, day_before)
    if by == "month" and local_time.day_of(part.until).day == 1:
        # Of a month of 28 days the whole month of 29 days a year ago.
        until = local_time.day_start(day_before(local_time.day_of(part.until)))
    if by == "hour":
        until = since + buckets.HOUR
        if not local_time.is_same_clock(since, part.since):
            until = since
    return local_time.hours_between(since, max(since, min(until, limit)))


def _span_before(span: Span, compared: Span, day_before: DayBefore) -> Span:
    """Returns what that part of a period is compared with: it ends at the same time of day."""
    since = local_time.day_start(day_before(span.first_day))
    until = _end_before(compared.until, day_before)
    return Span(since, max(since, min(until, span.since)))


def _end_before(end: datetime, day_before: DayBefore) -> datetime:
    """Returns the end, beside this one, of a part of the period before.

    The end of a day is that of the day before; within a day it is at the same time.
    """
    day = local_time.day_of(end)
    if end != local_time.day_start(day):
        return local_time.same_clock(end, day=day_before(day))
    last_day = local_time.day_of(end - local_time.MOMENT)
    return local_time.day_start(day_before(last_day) + buckets.DAY)
