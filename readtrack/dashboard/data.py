"""The numbers that the dashboard shows, as values. Tables and charts are functions of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack.dashboard.objects import Objects
from readtrack.dashboard.scope import Scope
from readtrack.models import FlushRun
from readtrack.reports.funnels import Stage

#: Counts of one kind and subject, by a value of a dimension, a stage or a time of reading.
Hashes = Mapping[tuple[str, str], Counter[str]]


class Counts(NamedTuple):
    """Views, new visitors and reads."""

    views: int = 0
    visitors: int = 0
    reads: int = 0


class Entry(NamedTuple):
    """The numbers of one object in the period and in the one before."""

    subject: str
    now: Counts
    before: Counts
    growth: int  # how many views more there were than in the period before
    # Views, new visitors and reads by index among the bounds of the chart.
    gained: Sequence[Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class ChartData:
    """The numbers of the whole scope by point, and what the page says beside them."""

    points_before: Sequence[Counts]  # none if the periods are not compared
    points: Sequence[Counts]
    total_before: Counts | None  # None if the periods are not compared
    total: Counts
    is_summed: bool  # False until a full flush has added up visitors and reads
    known_until: datetime  # later points are not known while Redis does not answer
    notes: Mapping[date, str]  # editors' notes in the period, first day first
    last_flush: FlushRun | None
    summed_until: int  # the last full flush's time (µs)


class SectionReaders(NamedTuple):
    """A category and the number of its readers."""

    subject: str
    category: Model
    readers: int


@dataclass(frozen=True, slots=True)
class DashboardData:
    """The numbers of a scope for some tables. What none of these tables needs is empty."""

    asked: Scope
    scope: Scope  # that of all time begins with the first hour of history
    objects: Objects  # the objects of the scope by subject
    shown: int | None  # rows that a table needs; None for all
    is_compared: bool  # True if there is a period before
    has_gains: bool  # True if breakdowns are of the period, False if they are of all time
    starts: Sequence[datetime]  # of the chart's points
    gap: int  # the number of the points of the period before; -1 if there is none
    is_live: bool  # False if Redis does not answer
    is_whole: bool  # False if Redis, or a server of a cluster, does not answer
    skips: Sequence[Counter[Any]]  # refused hits by reason, the latest hour first
    trending: Sequence[tuple[str, int]]  # subjects, and their views of the last hour
    entries: Sequence[Entry]  # best first
    hashes: Hashes  # of all time
    gains: Sequence[Hashes]  # of the period and, if compared, of the one before
    stages: Sequence[Sequence[Stage]]  # of the funnel, likewise
    recent: int | None  # visitors (or views) of the last minutes; None if not known
    chart: ChartData | None
    sections: Sequence[SectionReaders]  # fewest readers first
    accounts: int  # active ones
