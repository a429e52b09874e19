"""The check for row-level security, which only `migrate` and `check --database` run."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import Error, router

from readtrack import row_security
from readtrack.subjects import counted_models


def check_policies(
    app_configs: Sequence[AppConfig] | None,
    *,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[checks.CheckMessage]:
    """Checks that the database shows all rows of counted models, if it is among `databases`."""
    messages: list[checks.CheckMessage] = []
    for model in counted_models():
        if router.db_for_write(model) not in (databases or ()):
            continue
        try:
            refusal = row_security.refusal(model)
        except Error:  # the command that follows says what is wrong with the database
            continue
        if refusal is not None:
            messages.append(_message(model._meta.label, str(refusal)))
    return messages


def _message(label: str, refusal: str) -> checks.CheckMessage:
    """Returns the warning about the model `label`, whose rows the database may hide."""
    return checks.Warning(
        f"Views of {label} may wait in Redis for good: {refusal}",
        hint=(
            "Flush as a role with BYPASSRLS, or as the owner of the table if it is not under FORCE"
            " ROW LEVEL SECURITY, and run this check as that role. If a policy shows all rows to"
            " the role, silence this warning; deleted rows then keep their keys in Redis."
        ),
        id="readtrack.W086",
    )
