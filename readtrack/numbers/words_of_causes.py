"""The words for why the views of a story rose or fell. Each is a whole sentence, with its
numbers.
"""

from collections.abc import Callable, Mapping

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from readtrack.lines import one_line
from readtrack.numbers import tables
from readtrack.numbers.causes import SOURCES, Cause, NotedDay, Part
from readtrack.numbers.changes import signed
from readtrack.numbers.words import TITLE, Sentence, shortened
from readtrack.numerals import exact


def sentences_of_cause(cause: Cause | None) -> list[str]:
    """Returns why the views of a story rose or fell, in the active language; nothing if that is not
    known.
    """
    return [sentence.text for sentence in divided_sentences_of_cause(cause)]


def divided_sentences_of_cause(cause: Cause | None) -> list[Sentence]:
    """Returns the same, divided where the code of a country stands: a page has its name written by
    the browser, which knows it in each language. A server does not.
    """
    if cause is None:
        return []
    first = cause.parts[0]
    if first.dimension == "country":
        before, _mark, after = _of_cause(cause, source=TITLE).partition(TITLE)
        code = name_of(first)
        sentences = [Sentence(before, code, after, country=code)]
    else:
        sentences = [Sentence(_of_cause(cause, source=name_of(first)))]
    if cause.noted is not None:
        sentences.append(Sentence(_of_noted_day(cause.noted)))
    return sentences


def phrase_of_cause(cause: Cause | None) -> str:
    """Returns the same in short, for lists: "news.example +900"; "" if it is not known."""
    if cause is None:
        return ""
    if cause.kind == "alike":
        return _("all sources alike")
    return ", ".join(f"{name_of(part)} {signed(part.change)}" for part in cause.parts)


def name_of(part: Part) -> str:
    """Returns the value as people know it, as it stands behind a colon."""
    name = shortened(one_line(tables.name_of_value(part.dimension, part.value)))
    if part.dimension == "campaign":
        return _("campaign %(name)s") % {"name": name}
    return name


def _of_cause(cause: Cause, *, source: str) -> str:
    """Returns the sentence. `source` is what stands in it for the first value."""
    if cause.is_since_publication:
        text = SINCE_PUBLICATION[cause.kind](cause.now)
    elif cause.parts[0].dimension not in SOURCES:
        text = _of_readers(abs(cause.change), is_rise=cause.change > 0)
    elif cause.change > 0:
        text = RISES[cause.kind](cause.change)
    else:
        text = FALLS[cause.kind](-cause.change)
    first = cause.parts[0]
    second = cause.parts[-1]  # the first one again where it is alone
    brought = sum(part.change for part in cause.parts)
    return text % {
        "count": exact(abs(cause.change)),
        "part": exact(abs(first.change)),
        "source": source,
        "second_part": exact(abs(second.change)),
        "second": name_of(second),
        "rest": exact(abs(cause.change - brought)),
        "dimension": str(tables.labels_of(first.dimension).heading),
    }


def _of_noted_day(noted: NotedDay) -> str:
    text = ngettext(
        "Its best day was %(day)s, with %(count)s view; a note on it says: %(note)s",
        "Its best day was %(day)s, with %(count)s views; a note on it says: %(note)s",
        noted.views,
    )
    return text % {
        "day": date_format(noted.day, "DATE_FORMAT"),
        "count": exact(noted.views),
        "note": shortened(one_line(noted.text)),
    }


def _of_readers(count: int, *, is_rise: bool) -> str:
    if is_rise:
        return ngettext(
            "Of %(count)s view more than before, %(part)s came from readers with this in common: %(dimension)s,"
            " %(source)s.",
            "Of %(count)s views more than before, %(part)s came from readers with this in common: %(dimension)s,"
            " %(source)s.",
            count,
        )
    return ngettext(
        "Of %(count)s view fewer than before, %(part)s are missing from readers with this in common:"
        " %(dimension)s, %(source)s.",
        "Of %(count)s views fewer than before, %(part)s are missing from readers with this in common:"
        " %(dimension)s, %(source)s.",
        count,
    )


def _new(count: int) -> str:
    return ngettext(
        "Of %(count)s view more than before, %(part)s came from a source that had brought none before:"
        " %(source)s.",
        "Of %(count)s views more than before, %(part)s came from a source that had brought none before:"
        " %(source)s.",
        count,
    )


def _one_more(count: int) -> str:
    return ngettext(
        "Of %(count)s view more than before, %(part)s came from one source: %(source)s.",
        "Of %(count)s views more than before, %(part)s came from one source: %(source)s.",
        count,
    )


def _beyond_more(_count: int) -> str:
    return _(
        "%(source)s: %(part)s views more than before, and all other sources together %(rest)s fewer."
    )


def _two_more(count: int) -> str:
    return ngettext(
        "Of %(count)s view more than before, most came from two sources: %(source)s (%(part)s) and"
        " %(second)s (%(second_part)s).",
        "Of %(count)s views more than before, most came from two sources: %(source)s (%(part)s) and"
        " %(second)s (%(second_part)s).",
        count,
    )


def _alike_more(count: int) -> str:
    return ngettext(
        "All sources grew alike, and none stands out among %(count)s view more than before.",
        "All sources grew alike, and none stands out among %(count)s views more than before.",
        count,
    )


def _many_more(count: int) -> str:
    return ngettext(
        "%(count)s view more than before came from several sources; the largest part, %(part)s, from this"
        " one: %(source)s.",
        "%(count)s views more than before came from several sources; the largest part, %(part)s, from this"
        " one: %(source)s.",
        count,
    )


def _gone(count: int) -> str:
    return ngettext(
        "Of %(count)s view fewer than before, %(part)s are missing from a source that brings none any more:"
        " %(source)s.",
        "Of %(count)s views fewer than before, %(part)s are missing from a source that brings none any more:"
        " %(source)s.",
        count,
    )


def _one_fewer(count: int) -> str:
    return ngettext(
        "Of %(count)s view fewer than before, %(part)s are missing from one source: %(source)s.",
        "Of %(count)s views fewer than before, %(part)s are missing from one source: %(source)s.",
        count,
    )


def _beyond_fewer(_count: int) -> str:
    return _(
        "%(source)s: %(part)s views fewer than before, and all other sources together %(rest)s more."
    )


def _two_fewer(count: int) -> str:
    return ngettext(
        "Of %(count)s view fewer than before, most are missing from two sources: %(source)s (%(part)s) and"
        " %(second)s (%(second_part)s).",
        "Of %(count)s views fewer than before, most are missing from two sources: %(source)s (%(part)s) and"
        " %(second)s (%(second_part)s).",
        count,
    )


def _alike_fewer(count: int) -> str:
    return ngettext(
        "All sources fell alike, and none stands out among %(count)s view fewer than before.",
        "All sources fell alike, and none stands out among %(count)s views fewer than before.",
        count,
    )


def _many_fewer(count: int) -> str:
    return ngettext(
        "%(count)s view fewer than before is missing from several sources; the largest part, %(part)s, from"
        " this one: %(source)s.",
        "%(count)s views fewer than before are missing from several sources; the largest part, %(part)s, from"
        " this one: %(source)s.",
        count,
    )


def _one_of_all(count: int) -> str:
    return ngettext(
        "Of its %(count)s view, %(part)s came from one source: %(source)s.",
        "Of its %(count)s views, %(part)s came from one source: %(source)s.",
        count,
    )


def _two_of_all(count: int) -> str:
    return ngettext(
        "Of its %(count)s view, most came from two sources: %(source)s (%(part)s) and"
        " %(second)s (%(second_part)s).",
        "Of its %(count)s views, most came from two sources: %(source)s (%(part)s) and"
        " %(second)s (%(second_part)s).",
        count,
    )


def _many_of_all(count: int) -> str:
    return ngettext(
        "Its %(count)s view came from several sources; the largest part, %(part)s, from this one:"
        " %(source)s.",
        "Its %(count)s views came from several sources; the largest part, %(part)s, from this one:"
        " %(source)s.",
        count,
    )


#: The sentences by the kind of the cause, of so many views more, fewer, or since the publication.
RISES: Mapping[str, Callable[[int], str]] = {
    "new": _new,
    "one": _one_more,
    "beyond": _beyond_more,
    "two": _two_more,
    "alike": _alike_more,
    "many": _many_more,
}
FALLS: Mapping[str, Callable[[int], str]] = {
    "gone": _gone,
    "one": _one_fewer,
    "beyond": _beyond_fewer,
    "two": _two_fewer,
    "alike": _alike_fewer,
    "many": _many_fewer,
}
SINCE_PUBLICATION: Mapping[str, Callable[[int], str]] = {
    "one": _one_of_all,
    "two": _two_of_all,
    "many": _many_of_all,
}
