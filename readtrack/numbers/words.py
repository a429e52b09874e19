"""The words for how a period went. Each is a whole sentence, so that it can be translated.

Pages, mails and answers to programs take their words from here. What they are about is in
`readtrack.numbers.verdict`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from readtrack.numbers.changes import multiple
from readtrack.numbers.tables import MOST_PER_CENT
from readtrack.numbers.verdict import (
    LEAST_CHANGE,
    Change,
    Kind,
    SoFar,
    TopStory,
    UsualDay,
    UsualDays,
    Verdict,
    Word,
)
from readtrack.numerals import exact, per_cent
from readtrack.texts import line_of

LONGEST_TITLE = 120  # characters
TITLE = "\0"  # stands in a sentence where the title of the object comes, which may be a link

#: The verdict on a period by what the period is called, and by its word.
VERDICTS: Mapping[Kind, Mapping[Word, Any]] = {
    "today": {
        "good": gettext_lazy("A good day so far."),
        "usual": gettext_lazy("A usual day so far."),
        "quiet": gettext_lazy("A quiet day so far."),
    },
    "day": {
        "good": gettext_lazy("A good day."),
        "usual": gettext_lazy("A usual day."),
        "quiet": gettext_lazy("A quiet day."),
    },
    "week": {
        "good": gettext_lazy("A good week."),
        "usual": gettext_lazy("A usual week."),
        "quiet": gettext_lazy("A quiet week."),
    },
    "month": {
        "good": gettext_lazy("A good month."),
        "usual": gettext_lazy("A usual month."),
        "quiet": gettext_lazy("A quiet month."),
    },
    "year": {
        "good": gettext_lazy("A good year."),
        "usual": gettext_lazy("A usual year."),
        "quiet": gettext_lazy("A quiet year."),
    },
    "period": {
        "good": gettext_lazy("A good period."),
        "usual": gettext_lazy("A usual period."),
        "quiet": gettext_lazy("A quiet period."),
    },
}
#: The same with the names of the filters in force.
VERDICTS_OF_FILTERS: Mapping[Kind, Mapping[Word, Any]] = {
    "today": {
        "good": gettext_lazy("A good day so far for %(filters)s."),
        "usual": gettext_lazy("A usual day so far for %(filters)s."),
        "quiet": gettext_lazy("A quiet day so far for %(filters)s."),
    },
    "day": {
        "good": gettext_lazy("A good day for %(filters)s."),
        "usual": gettext_lazy("A usual day for %(filters)s."),
        "quiet": gettext_lazy("A quiet day for %(filters)s."),
    },
    "week": {
        "good": gettext_lazy("A good week for %(filters)s."),
        "usual": gettext_lazy("A usual week for %(filters)s."),
        "quiet": gettext_lazy("A quiet week for %(filters)s."),
    },
    "month": {
        "good": gettext_lazy("A good month for %(filters)s."),
        "usual": gettext_lazy("A usual month for %(filters)s."),
        "quiet": gettext_lazy("A quiet month for %(filters)s."),
    },
    "year": {
        "good": gettext_lazy("A good year for %(filters)s."),
        "usual": gettext_lazy("A usual year for %(filters)s."),
        "quiet": gettext_lazy("A quiet year for %(filters)s."),
    },
    "period": {
        "good": gettext_lazy("A good period for %(filters)s."),
        "usual": gettext_lazy("A usual period for %(filters)s."),
        "quiet": gettext_lazy("A quiet period for %(filters)s."),
    },
}
TONES: Mapping[Word | None, str] = {"good": "up", "quiet": "down"}

#: The number that changed most, by its name: it rose, it fell, and it is many times as high.
RISES: Mapping[str, Any] = {
    "views": gettext_lazy("Views rose by %(change)s."),
    "visitors": gettext_lazy("Visitors rose by %(change)s."),
    "seen": gettext_lazy("Seen views rose by %(change)s."),
    "reads": gettext_lazy("Reads rose by %(change)s."),
}
FALLS: Mapping[str, Any] = {
    "views": gettext_lazy("Views fell by %(change)s."),
    "visitors": gettext_lazy("Visitors fell by %(change)s."),
    "seen": gettext_lazy("Seen views fell by %(change)s."),
    "reads": gettext_lazy("Reads fell by %(change)s."),
}
MULTIPLES: Mapping[str, Any] = {
    "views": gettext_lazy("There were %(times)s times as many views as before."),
    "visitors": gettext_lazy("There were %(times)s times as many visitors as before."),
    "seen": gettext_lazy("There were %(times)s times as many seen views as before."),
    "reads": gettext_lazy("There were %(times)s times as many reads as before."),
}


class WordsOfShare(NamedTuple):
    """The words for the share of a story: alone, and with how many times its usual views it has."""

    shares: range  # whole per cents
    alone: Any
    with_usual: Any


#: The shares that have a word.
SHARES: Sequence[WordsOfShare] = (
    WordsOfShare(
        range(100, 101),
        gettext_lazy("All views went to one story: %(title)s."),
        gettext_lazy("All views went to one story: %(title)s, %(times)s times its usual."),
    ),
    WordsOfShare(
        range(48, 53),
        gettext_lazy("Half of all views went to one story: %(title)s."),
        gettext_lazy("Half of all views went to one story: %(title)s, %(times)s times its usual."),
    ),
    WordsOfShare(
        range(32, 36),
        gettext_lazy("A third of all views went to one story: %(title)s."),
        gettext_lazy(
            "A third of all views went to one story: %(title)s, %(times)s times its usual."
        ),
    ),
    WordsOfShare(
        range(24, 27),
        gettext_lazy("A quarter of all views went to one story: %(title)s."),
        gettext_lazy(
            "A quarter of all views went to one story: %(title)s, %(times)s times its usual."
        ),
    ),
)
ANY_SHARE = WordsOfShare(
    range(101),
    gettext_lazy("%(share)s of all views went to one story: %(title)s."),
    gettext_lazy("%(share)s of all views went to one story: %(title)s, %(times)s times its usual."),
)
SHARE_OF_PART = WordsOfShare(  # of the views with the filters
    range(101),
    gettext_lazy("%(share)s of these views went to one story: %(title)s."),
    gettext_lazy(
        "%(share)s of these views went to one story: %(title)s, %(times)s times its usual."
    ),
)

NOTHING_YET = gettext_lazy(
    "No views yet. Open a page of the site in a private window: it appears here within a minute."
)
USUAL_AFTER_FOUR_WEEKS = gettext_lazy("What is usual is known after four weeks.")


class Sentence(NamedTuple):
    """A sentence, divided where the title of an object stands in it."""

    before: str
    title: str = ""
    after: str = ""
    obj: Any = None  # which has the title; None for a sentence without one
    subject: str = ""
    country: str = ""  # whose code the title is; a browser writes its name there

    @property
    def text(self) -> str:
        """The whole sentence."""
        return f"{self.before}{self.title}{self.after}"


class Lead(NamedTuple):
    """What is said before all numbers, in the active language."""

    verdict: str  # the first sentence; "" without a verdict
    tone: str  # of the verdict: up, down or ""
    sentences: Sequence[Sentence]
    remarks: Sequence[str]  # what cannot be said, and why

    @property
    def text(self) -> str:
        """The verdict and the sentences, without the remarks."""
        texts = [self.verdict, *(sentence.text for sentence in self.sentences)]
        return " ".join(filter(None, texts))


SILENT = Lead("", "", (), ())


def lead(verdict: Verdict) -> Lead:
    """Returns what is said of a period; nothing while Redis does not answer."""
    if verdict.state == "silent":
        return SILENT
    if verdict.state != "known":
        return Lead("", "", [Sentence(_of_no_views(verdict))], ())
    sentences = [Sentence(_of_views(verdict))]
    if verdict.so_far is not None:
        sentences.append(Sentence(_of_so_far(verdict.so_far)))
    if verdict.change is not None:
        sentences.append(Sentence(_of_change(verdict.change)))
    if verdict.story is not None:
        sentences.append(_of_story(verdict.story))
    return Lead(
        verdict=_of_verdict(verdict),
        tone=TONES.get(verdict.word, ""),
        sentences=sentences,
        remarks=_remarks(verdict),
    )


def _names_of_filters(verdict: Verdict) -> str:
    """Returns the values of the filters in force."""
    return "; ".join(one.value for one in verdict.filters)


def _of_verdict(verdict: Verdict) -> str:
    """Returns the verdict; without one, the filters in force; "" without them, too."""
    filters = _names_of_filters(verdict)
    if verdict.word is None:
        return _("Only %(filters)s.") % {"filters": filters} if filters else ""
    if filters:
        return str(VERDICTS_OF_FILTERS[verdict.kind][verdict.word]) % {"filters": filters}
    return str(VERDICTS[verdict.kind][verdict.word])


def _of_views(verdict: Verdict) -> str:
    """Returns the sentence with the number that the verdict goes by."""
    if verdict.days is not None:
        return _of_days(verdict.days)
    if verdict.day is not None:
        return _of_day(verdict.day)
    # The change of today goes up to the running hour, and has a sentence with the numbers up to
    # then.
    return _of_count(verdict.views, None if verdict.so_far else verdict.views_change)


def _of_days(days: UsualDays) -> str:
    """Returns how many days were above, within or below the usual: what most of them were."""
    if days.above and not days.below:
        text = ngettext(
            "Views were above usual on %(count)s of %(days)s full day.",
            "Views were above usual on %(count)s of %(days)s full days.",
            days.days,
        )
        return text % {"count": exact(days.above), "days": exact(days.days)}
    if days.below and not days.above:
        text = ngettext(
            "Views were below usual on %(count)s of %(days)s full day.",
            "Views were below usual on %(count)s of %(days)s full days.",
            days.days,
        )
        return text % {"count": exact(days.below), "days": exact(days.days)}
    if days.above and days.below:
        text = ngettext(
            "Of %(days)s full day, views were above usual on %(above)s and below on %(below)s.",
            "Of %(days)s full days, views were above usual on %(above)s and below on %(below)s.",
            days.days,
        )
        return text % {
            "days": exact(days.days),
            "above": exact(days.above),
            "below": exact(days.below),
        }
    text = ngettext(
        "Views were usual on the %(days)s full day.",
        "Views were usual on all %(days)s full days.",
        days.days,
    )
    return text % {"days": exact(days.days)}


def _of_day(day: UsualDay) -> str:
    text = ngettext(
        "There was %(count)s view, where %(low)s to %(high)s are usual.",
        "There were %(count)s views, where %(low)s to %(high)s are usual.",
        day.views,
    )
    return text % {"count": exact(day.views), "low": exact(day.low), "high": exact(day.high)}


def _of_count(views: int, change: int | None) -> str:
    """Returns the sentence with the views, and their change if they are compared."""
    values = {"count": exact(views)}
    if change is None:
        text = ngettext("There was %(count)s view.", "There were %(count)s views.", views)
    elif change > MOST_PER_CENT:
        text = ngettext(
            "There was %(count)s view, %(times)s times as many as before.",
            "There were %(count)s views, %(times)s times as many as before.",
            views,
        )
        values["times"] = _times(change)
    elif change >= LEAST_CHANGE:
        text = ngettext(
            "There was %(count)s view, %(change)s more than before.",
            "There were %(count)s views, %(change)s more than before.",
            views,
        )
        values["change"] = per_cent(change)
    elif change <= -LEAST_CHANGE:
        text = ngettext(
            "There was %(count)s view, %(change)s fewer than before.",
            "There were %(count)s views, %(change)s fewer than before.",
            views,
        )
        values["change"] = per_cent(-change)
    else:
        text = ngettext(
            "There was %(count)s view, about as many as before.",
            "There were %(count)s views, about as many as before.",
            views,
        )
    return text % values


def _of_so_far(so_far: SoFar) -> str:
    day = _("%(weekday)s, %(day)s") % {
        "weekday": date_format(so_far.day_before, "l"),
        "day": date_format(so_far.day_before, "DATE_FORMAT"),
    }
    text = ngettext(
        "Up to %(time)s today had %(count)s view; by then %(day)s had %(before)s.",
        "Up to %(time)s today had %(count)s views; by then %(day)s had %(before)s.",
        so_far.views,
    )
    return text % {
        "time": date_format(timezone.localtime(so_far.until), "TIME_FORMAT"),
        "count": exact(so_far.views),
        "day": day,
        "before": exact(so_far.before),
    }


def _of_change(change: Change) -> str:
    if change.per_cent > MOST_PER_CENT:
        return str(MULTIPLES[change.name]) % {"times": _times(change.per_cent)}
    sentences = RISES if change.per_cent > 0 else FALLS
    return str(sentences[change.name]) % {"change": per_cent(abs(change.per_cent))}


def _times(change: int) -> str:
    """Returns a change in per cent as a factor: 12 of 1,100 %."""
    return exact(round(change / 100) + 1)


def _of_story(story: TopStory) -> Sentence:
    words = _words_of_share(story)
    values = {"share": per_cent(story.share), "title": TITLE}
    sentence = words.alone
    if story.times is not None:
        sentence = words.with_usual
        values["times"] = multiple(story.times)
    before, _title, after = (str(sentence) % values).partition(TITLE)
    title = shortened(line_of(story.obj))
    return Sentence(before, title, after, story.obj, story.subject)


def _words_of_share(story: TopStory) -> WordsOfShare:
    if story.is_of_part:
        return SHARE_OF_PART
    return next((words for words in SHARES if story.share in words.shares), ANY_SHARE)


def shortened(title: str) -> str:
    """Returns a title as it stands in a sentence: LONGEST_TITLE characters at most, and "…"."""
    return title if len(title) <= LONGEST_TITLE else f"{title[:LONGEST_TITLE]}…"


def _of_no_views(verdict: Verdict) -> str:
    if verdict.state == "nothing":
        return str(NOTHING_YET)
    if verdict.state == "storyless":
        return _("There is no story by this author yet, so there are no numbers.")
    filters = _names_of_filters(verdict)
    if filters:
        return _("No views of %(filters)s in these days.") % {"filters": filters}
    if verdict.last_day is None:
        return _("No views in these days.")
    last_day = date_format(verdict.last_day, "DATE_FORMAT")
    return _("No views in these days. The last one was on %(day)s.") % {"day": last_day}


def _remarks(verdict: Verdict) -> list[str]:
    """Returns what cannot be said of the period, and why."""
    remarks = []
    if verdict.is_older_than_history and verdict.began is not None:
        began = date_format(verdict.began, "DATE_FORMAT")
        text = _("Counting began on %(day)s, so there is nothing to compare with.")
        remarks.append(text % {"day": began})
    elif verdict.is_older_than_history:
        remarks.append(_("Nothing was counted so early, so there is nothing to compare with."))
    if verdict.no_band == "young":
        remarks.append(str(USUAL_AFTER_FOUR_WEEKS))
    elif verdict.no_band == "deleted":
        text = ngettext(
            "What is usual is not known here: views by the hour are kept for %(count)s day.",
            "What is usual is not known here: views by the hour are kept for %(count)s days.",
            verdict.days_kept,
        )
        remarks.append(text % {"count": exact(verdict.days_kept)})
    return remarks
