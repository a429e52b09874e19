"""The page of the admin that says which users have read an object."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from readtrack.audience.readers import Portion, portion
from readtrack.sql.read_states import NotRestoredError
from readtrack.store.connection import RedisError
from readtrack.subjects import has_read_state, may_be_key, parse_subject
from readtrack.texts import name_of, title_of

USERS = 100  # on a page


class Filter(NamedTuple):
    """Which users the page shows."""

    label: Any
    empty: Any  # says that there are none on the whole site
    has_read: bool | None  # None for all users


FILTERS = {
    "": Filter(_("All"), _("There are no users."), has_read=None),
    "unread": Filter(_("Have not read it"), _("Everybody has read it."), has_read=False),
    "read": Filter(_("Have read it"), _("Nobody has read it."), has_read=True),
}
# By whether the object is unread for a user; None if that is not known.
STATES = {False: _("has read it"), True: _("has not read it"), None: _("not known")}


def category_with(subject: str) -> Model | None:
    """Returns the object with read state that has the subject, which comes from an address; or
    None.
    """
    model_and_pk = parse_subject(subject)
    if model_and_pk is None:
        return None
    model, pk = model_and_pk
    if not (has_read_state(model) and may_be_key(model, pk)):
        return None
    return model._base_manager.filter(pk=pk).first()


def page_context(category: Model, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the context of the page's template.

    The parameters of the address are `state` (a name of FILTERS) and `after` (the primary key of
    the last user of the page before). They may be invalid, and are then left out.
    """
    name = parameters.get("state", "")
    if name not in FILTERS:
        name = ""
    chosen = FILTERS[name]
    after = _user_key(parameters.get("after", ""))
    problem = ""
    users = Portion([], None)
    try:
        users = portion(
            category, _active_users(), limit=USERS, after=after, has_read=chosen.has_read
        )
    except NotRestoredError:
        problem = gettext(
            "Redis lost what readers have read, so it is not known who has read it until a flush "
            "has restored it from the database."
        )
    except RedisError:
        problem = gettext("Redis does not answer, so it is not known now who has read it.")
    first_page = ""
    if after is not None:
        first_page = _address(state=name)
    next_page = ""
    if users.next_after is not None:
        next_page = _address(state=name, after=users.next_after)
    empty = chosen.empty
    if first_page or next_page:  # the page shows some of the users
        empty = gettext("There are none among these users.")
    return {
        "problem": problem,
        "filters": [
            (each.label, _address(state=state), state == name) for state, each in FILTERS.items()
        ],
        "rows": [(_name(user), STATES[is_unread]) for user, is_unread in users.states],
        "empty": empty,
        "first_page": first_page,
        "next_page": next_page,
    }


def _active_users() -> QuerySet[Any]:
    """Returns the active users; all users of a model that does not say who is active."""
    model = get_user_model()
    users: QuerySet[Any] = model._default_manager.all()
    try:
        model._meta.get_field("is_active")
    except FieldDoesNotExist:
        return users
    return users.filter(is_active=True)


def _user_key(text: str) -> Any:
    """Returns the primary key of a user that the text is; None for any other text."""
    model = get_user_model()
    if not (text and may_be_key(model, text)):
        return None
    return model._meta.pk.to_python(text)


def _name(user: Any) -> str:
    """Returns the full name of the user with the user name, or the user name alone."""
    full_name = name_of(user)
    username = title_of(user)
    if full_name == username:
        return username
    return f"{full_name} ({username})"


def _address(**parameters: Any) -> str:
    """Returns an address of the page, relative to it, with the parameters that are not empty."""
    return "?" + urlencode({name: value for name, value in parameters.items() if value != ""})
