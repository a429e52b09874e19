"""What to do next: at most three lines, each from a rule that can be read here.

No line is a guess: each says the numbers that it goes by. NUMBERS turns them off: `"advice": False`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from readtrack import buckets
from readtrack.numbers.data import Entry, ScopeData
from readtrack.numbers.options import numbers_options
from readtrack.numbers.tables import ROWS_ON_PAGE
from readtrack.numbers.words import TITLE, Sentence
from readtrack.numerals import exact, share
from readtrack.published import published_at
from readtrack.texts import line_of

MOST_LINES = 3
OLD_DAYS = 300  # after which a story that is still read has old links, most likely
LEAST_VIEWS = 200  # of a story in the period, below which nothing is said of it
LEAST_READS = 25  # per cent of the views; below it, a story loses its readers early
LEAST_OF_ONE = 50  # per cent of the views, which a single campaign brought


class Step(NamedTuple):
    """A line, and the filters of the page that shows more."""

    rule: str  # its name
    sentence: Sentence


def next_steps(data: ScopeData) -> list[Step]:
    """Returns what to do next, by the stories that the page lists. Makes no query for their rows.

    It is empty if the site wants no advice, and with a filter by a value, where little is known.
    """
    if not numbers_options().advice or data.asked.values or data.chart is None:
        return []
    listed = data.entries[:ROWS_ON_PAGE]
    steps = [
        *_still_read(data, listed),
        *_losing_readers(data, listed),
        *_from_one_campaign(data),
    ]
    return steps[:MOST_LINES]


def _still_read(data: ScopeData, entries: Sequence[Entry]) -> Iterator[Step]:
    """Yields the most viewed story that is so old that its links are old, too."""
    for entry in entries:
        if entry.now.views < LEAST_VIEWS:
            continue
        obj = data.objects[entry.subject]
        published = published_at(obj)
        days = 0 if published is None else (buckets.now() - published).days
        if days >= OLD_DAYS:
            text = ngettext(
                "Still read after %(days)s day, and its links are old: %(title)s.",
                "Still read after %(days)s days, and its links are old: %(title)s.",
                days,
            )
            yield Step("old", _sentence(text, entry, obj, days=exact(days)))
            return


def _losing_readers(data: ScopeData, entries: Sequence[Entry]) -> Iterator[Step]:
    """Yields the story that loses most of its readers before they have read it."""
    assert data.chart is not None  # noqa: S101 - see next_steps
    if not (data.chart.is_summed and data.chart.total.reads):
        return  # no template marks its texts, most likely
    read = [entry for entry in entries if entry.now.views >= LEAST_VIEWS and entry.now.reads]
    lowest = min(read, key=lambda entry: entry.now.reads / entry.now.views, default=None)
    if lowest is None or 100 * lowest.now.reads >= LEAST_READS * lowest.now.views:
        return
    text = _("Loses most readers early, only %(share)s of its views became reads: %(title)s.")
    reads = share(100 * lowest.now.reads / lowest.now.views)
    yield Step("losing", _sentence(text, lowest, data.objects[lowest.subject], share=reads))


def _from_one_campaign(data: ScopeData) -> Iterator[Step]:
    """Yields the campaign, such as a newsletter, that brought most of the views."""
    assert data.chart is not None  # noqa: S101 - see next_steps
    if not data.has_gains:
        return
    views = Counter[str]()
    for (kind, _subject), counts in data.gains.now.items():
        if kind == "views:campaign":
            views += counts
    for campaign, count in views.most_common(1):
        total = max(count, data.chart.total.views)
        if count >= LEAST_VIEWS and 100 * count >= LEAST_OF_ONE * total:
            text = _("%(share)s of all views come from one campaign: %(campaign)s.")
            values = {"share": share(100 * count / total), "campaign": campaign}
            yield Step("campaign", Sentence(text % values))


def _sentence(text: str, entry: Entry, obj: Any, **values: str) -> Sentence:
    before, _title, after = (text % {**values, "title": TITLE}).partition(TITLE)
    return Sentence(before, line_of(obj), after, obj, entry.subject)
