"""The words for how a story does. Each is a whole sentence, so that it can be translated."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, npgettext, pgettext_lazy

from readtrack.numbers.changes import multiple, signed_per_cent
from readtrack.numbers.rising import Rising
from readtrack.numbers.story import StoryVerdict, Trend, UsualOfStory
from readtrack.numbers.usual import Word
from readtrack.numbers.words import SILENT, Lead, Sentence
from readtrack.numbers.words_of_causes import divided_sentences_of_cause
from readtrack.numerals import exact, per_cent

HOURS_IN_WORDS = 48  # of an age; a longer one is given in days
LESS_THAN_HALF = -50  # per cent from one day to the next

VERDICTS: Mapping[Word, Any] = {
    "far above": gettext_lazy("Far better than usual."),
    "above": gettext_lazy("Better than usual."),
    "usual": gettext_lazy("As usual."),
    "below": gettext_lazy("Below usual."),
    "far below": gettext_lazy("Far below usual."),
}
TONES: Mapping[Word | None, str] = {
    "far above": "up",
    "above": "up",
    "below": "down",
    "far below": "down",
}
#: Words beside a multiple of the usual.
PLACES: Mapping[Word, Any] = {
    "far above": gettext_lazy("far above usual"),
    "above": gettext_lazy("above usual"),
    "usual": pgettext_lazy("behind a multiple, such as 1.3", "usual"),
    "below": gettext_lazy("below usual"),
    "far below": gettext_lazy("far below usual"),
}
#: Shares of reads that have a word, as whole per cents.
READS: Sequence[tuple[range, Any]] = (
    (range(48, 53), gettext_lazy("Half of its views became reads.")),
    (range(32, 36), gettext_lazy("A third of its views became reads.")),
    (range(24, 27), gettext_lazy("A quarter of its views became reads.")),
)
ANY_READS = gettext_lazy("%(share)s of its views became reads.")


def lead_of_story(verdict: StoryVerdict) -> Lead:
    """Returns what is said of a story; nothing while Redis does not answer."""
    if not verdict.is_known:
        return SILENT
    filters = "; ".join(one.value for one in verdict.filters)
    said = _("Only %(filters)s.") % {"filters": filters} if filters else ""
    if verdict.word is not None:
        said = str(VERDICTS[verdict.word])
    sentences = [Sentence(_of_views(verdict))]
    if verdict.reads is not None:
        sentences.append(Sentence(_of_reads(verdict, verdict.reads)))
    why = divided_sentences_of_cause(verdict.cause)
    if verdict.rising is not None:  # whatever it did until yesterday
        first = [Sentence(said)] if said else []
        return Lead(_of_rising(verdict.rising), "up", [*first, *sentences, *why], ())
    if verdict.trend is not None:
        sentences.append(Sentence(_of_trend(verdict.trend)))
    return Lead(said, TONES.get(verdict.word, ""), [*sentences, *why], ())


def age_text(hours: float) -> str:
    """Returns an age as text, as it stands behind "after": in hours, and from two days on in
    days.
    """
    if hours < HOURS_IN_WORDS:
        count = round(hours)
        text = npgettext("after so long", "%(count)s hour", "%(count)s hours", count)
    else:
        count = round(hours / 24)
        text = npgettext("after so long", "%(count)s day", "%(count)s days", count)
    return text % {"count": exact(count)}


def kind_text(usual: UsualOfStory) -> str:
    """Returns what a story is compared with: "posts", or "posts in Politics"."""
    if not usual.section:
        return usual.kind
    return _("%(objects)s in %(section)s") % {"objects": usual.kind, "section": usual.section}


def _of_views(verdict: StoryVerdict) -> str:
    usual = verdict.usual
    if usual is not None:
        text = ngettext(
            "It has %(count)s view after %(age)s, where %(kind)s have about %(usual)s.",
            "It has %(count)s views after %(age)s, where %(kind)s have about %(usual)s.",
            usual.views,
        )
        return text % {
            "count": exact(usual.views),
            "age": age_text(usual.age),
            "kind": kind_text(usual),
            "usual": exact(usual.usual),
        }
    if not verdict.views and verdict.is_since_publication:
        return _("No views yet.")
    if verdict.is_since_publication:
        text = ngettext("It has %(count)s view.", "It has %(count)s views.", verdict.views)
    else:
        text = ngettext(
            "It had %(count)s view in these days.",
            "It had %(count)s views in these days.",
            verdict.views,
        )
    return text % {"count": exact(verdict.views)}


def _of_reads(verdict: StoryVerdict, share: int) -> str:
    if verdict.usual is not None and not verdict.is_since_publication:
        # The sentence before is of all its views, and this one of those of the period.
        text = ngettext(
            "In the chosen period it had %(count)s view, %(share)s of which became reads.",
            "In the chosen period it had %(count)s views, %(share)s of which became reads.",
            verdict.views,
        )
        return text % {"count": exact(verdict.views), "share": per_cent(share)}
    for shares, sentence in READS:
        if share in shares:
            return str(sentence)
    return str(ANY_READS) % {"share": per_cent(share)}


def _of_rising(rising: Rising) -> str:
    text = ngettext(
        "Rising now: %(count)s view in the last five minutes, usually %(average)s.",
        "Rising now: %(count)s views in the last five minutes, usually %(average)s.",
        rising.views,
    )
    return text % {"count": exact(rising.views), "average": multiple(rising.usual)}


def _of_trend(trend: Trend) -> str:
    change = per_cent(abs(trend.per_cent))
    if trend.per_cent < LESS_THAN_HALF:
        text = _(
            "It is falling fast: yesterday it had %(change)s fewer views than the day before, where"
            " the rest of the site changed by %(others)s."
        )
    elif trend.per_cent < 0:
        text = _(
            "It is slowing down: yesterday it had %(change)s fewer views than the day before, where"
            " the rest of the site changed by %(others)s."
        )
    else:
        text = _(
            "It is still growing: yesterday it had %(change)s more views than the day before, where"
            " the rest of the site changed by %(others)s."
        )
    return text % {"change": change, "others": signed_per_cent(trend.per_cent_of_others)}
