"""The users in whose name questions are asked."""

from typing import Any

from django.contrib.auth import get_user_model

from readtrack.sql import databases


def active_user(pk: Any) -> Any | None:
    """Returns the user with the primary key `pk`, as the database has it now; None if there is none
    who could sign in.
    """
    model = get_user_model()
    # The manager by which Django signs users in. Not a replica, which may lag.
    rows = model._default_manager.using(databases.of(model).alias)
    user = rows.filter(pk=pk).first()
    # A model may have `is_active` as a plain attribute, so it is no condition of the query.
    return user if user is not None and user.is_active else None
