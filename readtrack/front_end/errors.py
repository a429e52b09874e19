"""What the endpoints refuse, beside what all endpoints do."""

from django.utils.translation import gettext, ngettext

from readtrack.views.errors import RefusalError as RefusalError
from readtrack.views.errors import unavailable as unavailable


def not_signed_in() -> RefusalError:
    return RefusalError("not_signed_in", gettext("Sign in first."), status=401)


def foreign() -> RefusalError:
    message = gettext("This request comes from a page of another site.")
    return RefusalError("foreign", message, status=403)


def bad_json() -> RefusalError:
    return RefusalError("bad_json", gettext('Send {"categories": ["1", "2"]}.'))


def bad_as_of() -> RefusalError:
    message = gettext("as_of is a number of microseconds out of an earlier answer.")
    return RefusalError("bad_as_of", message)


def no_category() -> RefusalError:
    return RefusalError("no_category", gettext("Name at least one category."))


def too_many(most: int) -> RefusalError:
    message = ngettext("Name at most %(most)s category.", "Name at most %(most)s categories.", most)
    return RefusalError("too_many", message % {"most": most})


def unknown_category(name: str) -> RefusalError:
    message = gettext("There is no category %(name)s.") % {"name": name[:100]}
    return RefusalError("unknown_category", message)
