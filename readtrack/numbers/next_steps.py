"""What to do next: at most three lines, each from a rule that can be read here.

Each line begins with what to do. No line is a guess: each says the numbers that it goes by. NUMBERS
turns them off: `"advice": False`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from readtrack import buckets
from readtrack.lines import one_line
from readtrack.numbers.changes import multiple, signed_per_cent
from readtrack.numbers.data import ChartData, Counts, GroupRow, ScopeData
from readtrack.numbers.options import numbers_options
from readtrack.numbers.order import most_first
from readtrack.numbers.published import published_at
from readtrack.numbers.rising import rising_stories
from readtrack.numbers.sql.breakdown_history import OTHER
from readtrack.numbers.tables import ROWS_ON_PAGE, change
from readtrack.numbers.usual import word_of
from readtrack.numbers.words import TITLE, Sentence, shortened
from readtrack.numerals import exact, share
from readtrack.texts import line_of

MOST_LINES = 3
OLD_DAYS = 300  # after which links and facts of a story that is still read are old, most likely
LEAST_VIEWS = 200  # of a story in the period, below which nothing is said of it
LEAST_USUAL = 200  # usual views of a new story, below which a shortfall is not worth a line
LEAST_READS = 25  # per cent of the views; below it, a story loses its readers early
LEAST_OF_ONE = 50  # per cent of the views, which a single campaign brought
LEAST_LOSS = 20  # per cent that a section loses, and more than all views did


class Step(NamedTuple):
    """A line, and the filters of the page that shows more."""

    rule: str  # its name
    sentence: Sentence
    filters: Mapping[str, str] = {}  # none for a story, whose page shows more


def next_steps(data: ScopeData) -> list[Step]:
    """Returns what to do next, what matters most first: what happens now, what does badly, what
    could do better. Makes no query for the rows of the stories that the page lists.

    It is empty if the site wants no advice, with a filter by a value, where little is known, and
    where the numbers of now are not known.
    """
    if not numbers_options().advice or data.asked.values or data.chart is None or data.is_silent:
        return []
    rules: Iterable[Iterator[Step]] = (
        _rising(data),
        _far_below_usual(data),
        _losing_section(data, data.chart),
        _losing_readers(data, data.chart),
        _from_one_campaign(data, data.chart),
        _still_read(data),
    )
    # None of the rules behind the last line that is shown is looked at.
    return [*islice(chain.from_iterable(rules), MOST_LINES)]


def _rising(data: ScopeData) -> Iterator[Step]:
    """Yields the story that rises now, with the most views of the last minutes."""
    if not data.scope.is_present:
        return
    for rising in rising_stories(data)[:1]:
        text = ngettext(
            "Keep it up to date while it rises, with %(count)s view in the last five minutes,"
            " usually %(average)s: %(title)s.",
            "Keep it up to date while it rises, with %(count)s views in the last five minutes,"
            " usually %(average)s: %(title)s.",
            rising.views,
        )
        values = {"count": exact(rising.views), "average": multiple(rising.usual)}
        yield Step("rising", _of_story(text, rising.subject, data, values))


def _far_below_usual(data: ScopeData) -> Iterator[Step]:
    """Yields the new story that lacks the most views of what is usual at its age."""
    far_below = {}
    for subject in data.objects.low:
        usual = data.usual.get(subject)
        if usual and usual.usual >= LEAST_USUAL and word_of(usual.times) == "far below":
            far_below[subject] = usual
    if not far_below:
        return
    subject = max(far_below, key=lambda one: far_below[one].usual - far_below[one].views)
    usual = far_below[subject]
    text = ngettext(
        "Show it once more, it has %(count)s view, where about %(usual)s are usual at its age:"
        " %(title)s.",
        "Show it once more, it has %(count)s views, where about %(usual)s are usual at its age:"
        " %(title)s.",
        usual.views,
    )
    values = {"count": exact(usual.views), "usual": exact(round(usual.usual))}
    yield Step("below", _of_story(text, subject, data, values))


def _losing_section(data: ScopeData, chart: ChartData) -> Iterator[Step]:
    """Yields the section that lost the most views, beside what it would have lost as all views did;
    none on a page that takes no filter by a section, to which the line would lead.
    """
    before = chart.total_before
    is_unfinished_day = data.asked.is_present and data.asked.is_of_a_day  # lacks the last hour
    if before is None or is_unfinished_day or not data.asked.takes("category"):
        return
    if not (before.views and chart.is_before_whole):
        return
    found = _section_that_lost_most(data, chart.compared, before)
    if found is None:
        return
    row, per_cent = found
    if data.asked.is_part:
        text = _(
            "Look at %(section)s: its views changed by %(change)s, these views together by %(all)s."
        )
    else:
        text = _("Look at %(section)s: its views changed by %(change)s, all views by %(all)s.")
    values = {
        "section": TITLE,
        "change": signed_per_cent(per_cent),
        "all": signed_per_cent(change(chart.compared.views, before.views) or 0),
    }
    before_title, _title, after = (text % values).partition(TITLE)
    title = shortened(line_of(data.group_titles["section", row.name]))
    yield Step("section", Sentence(before_title, title, after), {"category": row.name})


def _section_that_lost_most(
    data: ScopeData, compared: Counts, before: Counts
) -> tuple[GroupRow, int] | None:
    """Returns the section that lost the most views beside all views, and its change in per cent;
    None if none lost LEAST_LOSS more than they did.
    """
    of_all = change(compared.views, before.views) or 0
    most_lost = 0.0
    found = None
    for row in data.groups.get("section", ()):
        per_cent = change(row.compared.views, row.before.views)
        is_known = ("section", row.name) in data.group_titles
        if not is_known or row.before.views < LEAST_VIEWS or per_cent is None:
            continue
        lost = row.before.views * compared.views / before.views - row.compared.views
        if per_cent <= min(0, of_all) - LEAST_LOSS and lost > most_lost:
            most_lost = lost
            found = (row, per_cent)
    return found


def _losing_readers(data: ScopeData, chart: ChartData) -> Iterator[Step]:
    """Yields the story that loses most of its readers before they have read it."""
    if not (chart.is_summed and chart.total.reads):
        return  # no template marks its texts, most likely
    listed = data.entries[:ROWS_ON_PAGE]
    read = [entry for entry in listed if entry.now.views >= LEAST_VIEWS and entry.now.reads]
    lowest = min(read, key=lambda entry: entry.now.reads / entry.now.views, default=None)
    if lowest is None or 100 * lowest.now.reads >= LEAST_READS * lowest.now.views:
        return
    text = ngettext(
        "Rework its beginning, of %(count)s view only %(share)s became reads: %(title)s.",
        "Rework its beginning, of %(count)s views only %(share)s became reads: %(title)s.",
        lowest.now.views,
    )
    values = {
        "count": exact(lowest.now.views),
        "share": share(100 * lowest.now.reads / lowest.now.views),
    }
    yield Step("losing", _of_story(text, lowest.subject, data, values))


def _from_one_campaign(data: ScopeData, chart: ChartData) -> Iterator[Step]:
    """Yields the campaign, such as a newsletter, that brought most of the views."""
    if not data.has_gains:
        return
    views = Counter[str]()
    for (kind, _subject), counts in data.gains.now.items():
        if kind == "views:campaign":
            views += counts
    del views[OTHER]  # that is no campaign, but many
    for campaign, count in most_first(views)[:1]:
        total = max(count, chart.total.views)
        if count >= LEAST_VIEWS and 100 * count >= LEAST_OF_ONE * total:
            if data.asked.is_part:
                text = _(
                    "Find readers elsewhere, too, as %(share)s of these views come from one"
                    " campaign: %(campaign)s."
                )
            else:
                text = _(
                    "Find readers elsewhere, too, as %(share)s of all views come from one campaign:"
                    " %(campaign)s."
                )
            values = {"share": share(100 * count / total), "campaign": TITLE}
            before, _title, after = (text % values).partition(TITLE)
            sentence = Sentence(before, one_line(campaign), after)
            yield Step("campaign", sentence, {"campaign": campaign})


def _still_read(data: ScopeData) -> Iterator[Step]:
    """Yields the most viewed story that is so old that its links are old, too, and how many are.

    It is one of those whose rows are loaded. How many there are is told only if all rows are.
    """
    viewed = [entry for entry in data.entries if entry.now.views >= LEAST_VIEWS]
    loaded = [entry for entry in viewed if data.objects.has_row(entry.subject)]
    days_of_old = {}
    for entry in loaded:
        published = published_at(data.objects[entry.subject])
        days = 0 if published is None else (buckets.now() - published).days
        if days >= OLD_DAYS:
            days_of_old[entry.subject] = (days, entry.now.views)
    for subject, (days, views) in [*days_of_old.items()][:1]:
        number = len(days_of_old) if len(loaded) == len(viewed) else 1
        text, values = _words_of_old(number, days=days, views=views)
        yield Step("old", _of_story(text, subject, data, values))


def _words_of_old(number: int, *, days: int, views: int) -> tuple[str, Mapping[str, str]]:
    """Returns the words for so many old stories, the first of which has so many views."""
    if number == 1:
        text = ngettext(
            "Refresh its links, it is still read after %(days)s day: %(title)s, %(views)s views.",
            "Refresh its links, it is still read after %(days)s days: %(title)s, %(views)s views.",
            days,
        )
        return text, {"days": exact(days), "views": exact(views)}
    text = ngettext(
        "Refresh the links of %(count)s story that is older than %(old)s days and still read, first"
        " of %(title)s, %(views)s views.",
        "Refresh the links of %(count)s stories that are older than %(old)s days and still read,"
        " first of %(title)s, %(views)s views.",
        number,
    )
    return text, {"count": exact(number), "old": exact(OLD_DAYS), "views": exact(views)}


def _of_story(text: str, subject: str, data: ScopeData, values: Mapping[str, str]) -> Sentence:
    data.objects.load([subject])  # or else all rows of the scope would be
    obj = data.objects[subject]
    before, _title, after = (text % {**values, "title": TITLE}).partition(TITLE)
    return Sentence(before, shortened(line_of(obj)), after, obj, subject)
