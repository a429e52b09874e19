"""What the numbers of the page mean, in words."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy, pgettext_lazy

from readtrack.conf import conf
from readtrack.numbers import tables
from readtrack.numbers.data import ScopeData
from readtrack.numbers.options import numbers_options

SEEN = gettext_lazy("Seen")
TIMES_USUAL = pgettext_lazy("heading of a column with multiples", "× usual")
#: What the numbers of the page mean, by their names.
DEFINITIONS: Sequence[tuple[Any, Any]] = (
    (
        gettext_lazy("Views"),
        gettext_lazy(
            "How often a story was viewed. Robots do not count, and neither do reloads within a "
            "short time."
        ),
    ),
    (
        gettext_lazy("Visitors"),
        gettext_lazy(
            "The different people in the period: somebody who views six stories on three days is "
            "one visitor. Whole days are counted, and periods are compared without today, because "
            "it is not over. The number is right within about one per cent."
        ),
    ),
    (
        SEEN,
        gettext_lazy(
            "Views whose page came to life in a browser, as its script reports. What is not seen "
            "are robots that pass for people, and readers without JavaScript."
        ),
    ),
    (
        gettext_lazy("Reads"),
        gettext_lazy("Views whose text was really read, by the time and by how far the page got."),
    ),
    (
        gettext_lazy("Views by category and by author"),
        gettext_lazy(
            "A view counts for the category and the author that the story had when it was viewed, "
            "whatever has become of it since. Full flushes add these numbers up, mostly once an "
            "hour."
        ),
    ),
    (
        TIMES_USUAL,
        gettext_lazy(
            "How many times the usual views a story has since its publication. Usual is what the "
            "last 100 stories of its category had at the same age; of the whole model, if the "
            "category has fewer than 10. The quarter with the most views and the quarter with the "
            "fewest are left out, and the mean of the others is taken. Behind the chart is what "
            "the middle half had: of the site in the same hour, or on the same day, of the eight "
            "weeks before it."
        ),
    ),
    (gettext_lazy("People now"), gettext_lazy("The different visitors of the last five minutes.")),
)
#: Why an earlier period has no column for it.
USUAL_IS_OF_NOW = gettext_lazy("It is as of now, so lists of earlier periods do not have it.")
#: What the site's settings make of the first two, by the names of the numbers.
EXCLUDES_NOBODY = gettext_lazy(
    "The site's own people count like everybody else, because the setting EXCLUDE names none."
)
EXCLUDES = gettext_lazy("Whom the setting EXCLUDE names does not count: %(rules)s.")
KNOWN_FOR_A_DAY = gettext_lazy(
    "To protect their privacy, people without a cookie are known for one day only, so they count "
    "once a day."
)
NO_COOKIES = gettext_lazy(
    "This site sets no cookie: people who are not signed in are known for one day only, so they "
    "count once a day."
)
SIGNED_IN_ONLY = gettext_lazy("This site counts people who are signed in, and nobody else.")
OF_ANONYMOUS = {"cookie": KNOWN_FOR_A_DAY, "hash": NO_COOKIES, "none": SIGNED_IN_ONLY}
MORE_DIMENSIONS = gettext_lazy("More can be told: %(names)s. In the settings, write %(line)s.")


def definitions(data: ScopeData) -> list[tuple[Any, Any]]:
    """Returns those of DEFINITIONS whose numbers the page may show."""
    has_seen = data.chart is not None and bool(data.chart.total.seen)
    shown = [one for one in DEFINITIONS if has_seen or one[0] != SEEN]
    (views, of_views), (visitors, of_visitors), *others = shown
    excluded = ", ".join(sorted(key for key, value in conf.EXCLUDE.items() if value))
    own_people = EXCLUDES % {"rules": excluded} if excluded else EXCLUDES_NOBODY
    anonymous = OF_ANONYMOUS.get(conf.ANONYMOUS, "")  # a check names an unknown value
    return [
        (views, f"{of_views} {own_people}"),
        (visitors, f"{of_visitors} {anonymous}".rstrip()),
        *((name, _meaning(name, text, data)) for name, text in others),
    ]


def _meaning(name: Any, text: Any, data: ScopeData) -> Any:
    """Returns what a number means, and why the page lacks it."""
    if name == TIMES_USUAL and not data.scope.is_present:
        return f"{text} {USUAL_IS_OF_NOW}"
    return text


def more_dimensions() -> str:
    """Returns which dimensions the site could have, too, and the line to write; "" for none."""
    names = [str(path) for path in numbers_options().dimensions]
    missing = [name for name in tables.DIMENSIONS if name not in names]
    if not missing:
        return ""
    listed = ", ".join(str(tables.labels_of(name).title) for name in missing)
    quoted = ", ".join(f'"{name}"' for name in [*names, *missing])
    return MORE_DIMENSIONS % {"names": listed, "line": f'"NUMBERS": {{"dimensions": [{quoted}]}}'}
