"""The numbers of a scope, as values. Tables and charts are functions of them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack.models import FlushRun
from readtrack.numbers.objects import Objects
from readtrack.numbers.reports.funnels import Stage
from readtrack.numbers.reports.usual_views import Usual
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql.memberships import Group
from readtrack.numbers.sql.usual import Band
from readtrack.numbers.usual_now import Story

#: The hashes of counts, by kind (`views:country`, `funnel`, `reading`) and subject. Each counts by
#: a value of the dimension, by a stage of the funnel or by a time of reading.
Hashes = Mapping[tuple[str, str], Counter[str]]


class Counts(NamedTuple):
    """Views, reads, and views that were seen."""

    views: int = 0
    reads: int = 0
    seen: int = 0


class People(NamedTuple):
    """The different visitors; None where they are not known, as without Redis."""

    total: int | None = None  # of the whole scope in the period
    compared: int | None = None  # what `before` is compared with: up to now without today
    before: int | None = None  # in the period before; None as well if it is not compared
    is_cut: bool = False  # True if the scope has too many days of objects to unite
    by_point: Sequence[int | None] = ()  # empty if points are hours, or not known
    by_subject: Mapping[str, int | None] = {}  # of objects that a table shows, in the period
    by_group: Mapping[tuple[str, str], int | None] = {}  # the same by kind and name of a group


class GainedByPoint(NamedTuple):
    """The numbers that an object gained in each point. The keys are indexes of
    `Bounds.first_hours`.
    """

    views: Mapping[int, int]
    reads: Mapping[int, int]
    seen: Mapping[int, int]


class Entry(NamedTuple):
    """The numbers of one object in the period and in the one before."""

    subject: str
    now: Counts
    compared: Counts  # what `before` is compared with; see `Scope.compared`
    before: Counts
    growth: int  # how many views more the compared part has than the period before
    gained: GainedByPoint


class DayNote(NamedTuple):
    """A note on the chart. One about the publication of an object has the object."""

    text: str
    obj: Any = None
    published: int = 0  # number of publications that it is about; 0 for a note by an editor
    at: datetime | None = None  # when that was; None for several, and for a note by an editor


class GroupRow(NamedTuple):
    """The numbers of a category, an author or an age in the period and in the one before."""

    name: str  # see `readtrack.numbers.sql.memberships`
    now: Counts
    compared: Counts  # what `before` is compared with
    before: Counts
    visitors_of: Sequence[str]  # the subjects under which its visitors are stored, one for a model


@dataclass(frozen=True, slots=True)
class ChartData:
    """The numbers of the whole scope by point, and what the page says beside them."""

    # Beside each point; None where there is nothing to compare. Empty if the periods are not
    # compared.
    points_before: Sequence[Counts | None]
    points: Sequence[Counts]
    total_before: Counts | None  # None if the periods are not compared
    is_before_whole: bool  # False if history began later than the period before
    total: Counts
    compared: Counts  # what `total_before` is compared with; see `Scope.compared`
    is_summed: bool  # False until a full flush has added up the reads and the seen views
    known_until: datetime  # later points are not known while Redis does not answer
    # Editors' notes in the period, and those about publications, first day first.
    notes: Mapping[date, Sequence[DayNote]]
    last_flush: FlushRun | None
    summed_until: int  # the time of the last full flush (µs), 0 for none
    usual: Sequence[Band | None]  # the usual views at each point; empty if nothing is usual
    # The usual views of the site, or of a model, on each day; of today until now.
    usual_days: Mapping[date, Band]


class PeriodHashes(NamedTuple):
    """Hashes of the period, of the part that is compared, and of the period before; None for this
    one if they are not compared.
    """

    now: Hashes
    compared: Hashes
    before: Hashes | None


class PeriodStages(NamedTuple):
    """Stages of the period, of the part that is compared, and of the period before; None for this
    one if they are not compared.
    """

    now: Sequence[Stage]
    compared: Sequence[Stage]
    before: Sequence[Stage] | None


class SectionReaders(NamedTuple):
    """A category and the number of its readers."""

    subject: str
    category: Model
    readers: int


class ByValue(NamedTuple):
    """How the objects of a scope were compared by a chosen value of a dimension."""

    is_compared_by_day: bool  # True if their days are compared with those of the period before


@dataclass(frozen=True, slots=True)
class ScopeData:
    """The numbers of a scope for some tables. A field that none of these tables needs is empty."""

    asked: Scope  # the scope as the address has it
    scope: Scope  # the same, but "all time" begins with the first hour of history
    objects: Objects  # the objects of the scope by subject
    row_limit: int | None  # rows of objects that a table needs; None for all
    is_compared: bool  # True if there is a period before
    by_value: ByValue | None  # None unless values of dimensions are chosen
    is_before_known: bool  # False if history does not go back to the period before
    # The kinds of hashes that gained nothing before what is compared, as of a dimension that was
    # turned on since then.
    late_kinds: Collection[str]
    # When the models first gained something of each kind of hashes that is shown; none of all time.
    first_gains: Mapping[str, datetime]
    has_gains: bool  # True if breakdowns are of the period, False if they are of all time
    starts: Sequence[datetime]  # of the chart's points
    gap_index: int  # see `Bounds`
    is_live: bool  # False if Redis does not answer
    is_whole: bool  # False if Redis, or a server of a cluster, does not answer
    is_read_state_lost: bool  # Redis lost it, and no flush has restored it yet
    skips: Sequence[Counter[Any]]  # refused hits by reason, one counter an hour, latest hour first
    trending: Sequence[tuple[str, int]]  # subjects, and their views of the last hour
    entries: Sequence[Entry]  # best first
    people: People  # the different visitors
    usual: Mapping[str, Usual]  # of the objects that tables show, by subject; missing if not known
    hashes: Hashes  # of all time
    live_views: Mapping[str, int]  # of all time, by subject; empty if no table needs them
    # The views of the whole site in each point, as stored; empty but for the page of one object,
    # and for who may not see them.
    site_views: Sequence[int]
    # The views of the period whose reader was active, of the only object; None on other pages.
    engaged: int | None
    gains: PeriodHashes  # what breakdowns and funnels show; of all time without `has_gains`
    stages: PeriodStages  # of the funnel, by the gains
    #: The first hour of which the models of the scope have history, or the start of 1970 if they
    #: were counted before. None without history, and if no table needs it.
    counted_since: datetime | None
    # The last minutes of the only object, or of the stories that trend most, by subject. Empty
    # where it is not known what is usual for them.
    stories_now: Mapping[str, Story]
    recent: int | None  # visitors (or views) of the last minutes; None if not known
    chart: ChartData | None
    sections: Sequence[SectionReaders]  # fewest readers first
    accounts: int  # number of active accounts
    groups: Mapping[Group, Sequence[GroupRow]]  # by kind: section, author, age; most views first
    group_titles: Mapping[tuple[str, str], Any]  # categories and names of authors

    @property
    def is_silent(self) -> bool:
        """Returns True if a server of Redis does not answer, so that the numbers of now are not
        known.
        """
        return self.scope.is_present and not self.is_whole
