"""How a digest is written: a text and an HTML mail in the language of its reader.

There are no pictures, no scripts, and nothing that tells whether the mail was read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from email.policy import default as default_policy
from typing import Any
from urllib.parse import urlencode

import django
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils import timezone, translation
from django.utils.encoding import iri_to_uri
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from readtrack.access import numbers_url
from readtrack.digest import links
from readtrack.digest.contents import Contents, Number, Story
from readtrack.digest.options import digest_options
from readtrack.digest.periods import DigestPeriod
from readtrack.digest.readers import Reader
from readtrack.lines import one_line
from readtrack.numbers import tables
from readtrack.numbers.changes import multiple
from readtrack.numbers.objects import STILL_READ_DAYS
from readtrack.numbers.scope import A_WEEK_EARLIER, COMPARISONS
from readtrack.numbers.site_address import absolute
from readtrack.numbers.words import lead
from readtrack.numbers.words_of_causes import sentences_of_cause
from readtrack.numerals import exact
from readtrack.texts import address_of, line_of, name_of

LONGEST_TITLE = 200  # characters
LONGEST_HEADER = 900  # characters of a line; RFC 5322 allows 998


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the period beside that of the period before, as texts."""

    label: str
    value: str
    before: str
    change: str


@dataclass(frozen=True, slots=True)
class Line:
    """An object of a list: its title, the address that it links to ("" for none), its number,
    why.
    """

    title: str
    url: str
    number: str
    why: str  # it grew; "" if that is not known


@dataclass(frozen=True, slots=True)
class Section:
    """A list of objects."""

    heading: str
    unit: str  # what the numbers are
    caption: str
    lines: Sequence[Line]


class Letter(EmailMultiAlternatives):
    """A mail whose headers are not folded."""

    def message(self, **options: Any) -> Any:
        """Returns the mail as Python's `email` has it.

        Django 6.0 and later take a policy. By default it encodes words of more than 78 characters,
        such as the address in List-Unsubscribe, which mail programs then do not understand.
        """
        if django.VERSION >= (6, 0):
            policy = options.get("policy", default_policy)
            options["policy"] = policy.clone(max_line_length=LONGEST_HEADER)
        return super().message(**options)


def letter(contents: Contents, reader: Reader) -> Letter:
    """Returns the mail with the contents for the reader, in the reader's language."""
    with translation.override(reader.language), timezone.override(reader.zone):
        context = _context(contents, reader)
        text = render_to_string("readtrack/digest/mail.txt", context)
        html = render_to_string("readtrack/digest/mail.html", context)
        subject = _subject(contents)
    message = Letter(
        subject=subject,
        body=text,
        from_email=digest_options().sender,
        to=[reader.address],
        headers=_headers(context["stop_url"]),
    )
    message.attach_alternative(html, "text/html")
    return message


def _headers(stop_url: str) -> dict[str, str]:
    """Returns the headers by which mail programs show a button to stop (RFC 8058)."""
    headers = {"Auto-Submitted": "auto-generated"}
    if stop_url:
        headers["List-Unsubscribe"] = f"<{stop_url}>"
        headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return headers


def _subject(contents: Contents) -> str:
    """Returns the subject, which has no text of the site's users."""
    count = contents.views.now or 0
    subject = ngettext(
        "%(site)s: %(count)s view, %(period)s", "%(site)s: %(count)s views, %(period)s", count
    )
    period = _period_text(contents.period)
    return subject % {"site": digest_options().title, "count": exact(count), "period": period}


def _context(contents: Contents, reader: Reader) -> dict[str, Any]:
    """Returns the context of both templates."""
    name = name_of(reader.user) if contents.author else digest_options().title
    return {
        "language": translation.get_language(),
        "direction": "rtl" if translation.get_language_bidi() else "ltr",
        "title": _("Numbers of %(author)s") % {"author": _shortened(one_line(name))},
        "period": _period_text(contents.period),
        "is_empty": contents.is_empty,
        "lead": lead(contents.verdict),
        "headings": [_before_heading(contents), _change_heading()],
        "figures": _figures(contents),
        "usual": _usual_text(contents.usual_views),
        "sections": [section for section in _sections(contents, reader) if section.lines],
        "robots": _robots_text(contents.robots),
        "dashboard_url": _dashboard_url(contents, reader),
        "stop_url": _absolute(links.stop_path(reader.user)),
    }


def _before_heading(contents: Contents) -> str:
    """Returns the heading of the numbers of the period before."""
    if contents.comparison == A_WEEK_EARLIER:
        return str(COMPARISONS[A_WEEK_EARLIER])
    return pgettext("the number of the period before", "Before")


def _change_heading() -> str:
    return str(tables.COLUMNS["change"].heading)


def _period_text(period: DigestPeriod) -> str:
    """Returns the first and the last day of the period as text."""
    first = _day_text(period.first_day)
    if period.is_day:
        return first
    days = {"first": first, "last": _day_text(period.last_day)}
    return pgettext("period", "%(first)s to %(last)s") % days


def _day_text(day: date) -> str:
    return date_format(day, "DATE_FORMAT")


def _figures(contents: Contents) -> list[Figure]:
    """Returns the views, the visitors and the reads as texts."""
    numbers = {"views": contents.views, "visitors": contents.visitors, "reads": contents.reads}
    return [_figure(str(tables.COLUMNS[key].heading), number) for key, number in numbers.items()]


def _figure(label: str, number: Number) -> Figure:
    return Figure(
        label=label,
        value=tables.text(number.now, "number"),
        before=tables.text(number.before, "number"),
        change=tables.change_text(number.now, number.before),
    )


def _usual_text(views: int | None) -> str:
    """Returns a sentence about the usual views; "" if nothing is usual."""
    if not views:
        return ""
    text = ngettext("About %(count)s view is usual.", "About %(count)s views are usual.", views)
    return text % {"count": exact(views)}


def _robots_text(hits: int | None) -> str:
    """Returns a sentence about the hits of robots; "" if none are known."""
    if not hits:
        return ""
    text = ngettext(
        "Robots and assistants: %(count)s hit of the last 24 hours was not counted.",
        "Robots and assistants: %(count)s hits of the last 24 hours were not counted.",
        hits,
    )
    return text % {"count": exact(hits)}


def _sections(contents: Contents, reader: Reader) -> Iterable[Section]:
    """Yields the lists of objects, those without objects too."""
    views = str(tables.COLUMNS["views"].heading)

    def lines(stories: Sequence[Story], form: str = "%s") -> list[Line]:
        return [
            _line(story, contents, reader, number=form % exact(round(story.number)))
            for story in stories
        ]

    yield Section(_("Top stories"), views, "", lines(contents.most_viewed))
    yield Section(
        _("Better than usual"),
        str(tables.COLUMNS["usual"].heading),
        _("Published in the period, and viewed more often than others of the same age."),
        [_line(story, contents, reader, number=multiple(story.number)) for story in contents.best],
    )
    yield Section(
        _("Grew most"), str(tables.COLUMNS["growth"].heading), "", lines(contents.grown, "+%s")
    )
    published = ngettext(
        "Published more than %(count)s day before the period.",
        "Published more than %(count)s days before the period.",
        STILL_READ_DAYS,
    )
    yield Section(
        _("Still read"),
        views,
        published % {"count": exact(STILL_READ_DAYS)},
        lines(contents.still_read),
    )


def _line(story: Story, contents: Contents, reader: Reader, *, number: str) -> Line:
    """Returns an object of a list. Staff get a link to its numbers, others one to its page."""
    url = ""
    if _uses_admin(reader):
        url = numbers_url(story.obj)
    if url:
        url = f"{url}?{urlencode(contents.period.parameters)}"
    return Line(
        title=_shortened(line_of(story.obj)),
        url=_absolute(url or address_of(story.obj)),
        number=number,
        why=" ".join(sentences_of_cause(story.cause)),
    )


def _dashboard_url(contents: Contents, reader: Reader) -> str:
    """Returns the address of the dashboard with the period; "" for readers who cannot open it."""
    if not _uses_admin(reader):
        return ""
    name = "readtrack_author" if contents.author else "readtrack_dashboard_changelist"
    try:
        url = reverse(f"admin:{name}")
    except NoReverseMatch:
        return ""
    return _absolute(f"{url}?{urlencode(contents.period.parameters)}")


def _uses_admin(reader: Reader) -> bool:
    """Returns True for staff, who alone may open pages of the admin."""
    return bool(getattr(reader.user, "is_staff", False))


def _absolute(address: str) -> str:
    """Returns the address with the host of the site, without spaces and line breaks; "" for ""."""
    return iri_to_uri(absolute(digest_options().site, address)) if address else ""


def _shortened(text: str) -> str:
    """Returns the beginning of a line."""
    return text if len(text) <= LONGEST_TITLE else f"{text[:LONGEST_TITLE]}…"
