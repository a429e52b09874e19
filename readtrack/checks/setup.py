"""All system checks, in the order of their messages. None of them touches a network, except those
of the database, which only `migrate` and `check --database` run.
"""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage

from readtrack import parts
from readtrack.checks import (
    cache,
    histories,
    layouts,
    middleware,
    migrations,
    models,
    news,
    row_security,
    schedule,
    setting_types,
    setting_values,
    tenants,
    unique_visitors,
    users,
)
from readtrack.parts import Check

TYPE_CHECKS: tuple[Check, ...] = (
    setting_types.check_dict,
    setting_types.check_types,
    setting_types.check_names,
    setting_types.check_keys,
    setting_types.check_parts,
    setting_types.check_needs,
)
CHECKS: tuple[Check, ...] = (
    *TYPE_CHECKS,
    users.check_user_model,
    cache.check_cache,
    cache.check_key_prefix,
    tenants.check_part,
    middleware.check_presence,
    middleware.check_authentication,
    middleware.check_compression,
    middleware.check_site_cache,
    middleware.check_conditional_get,
    middleware.check_page_makers,
    setting_values.check_seconds,
    setting_values.check_patterns,
    setting_values.check_proxies,
    setting_values.check_address_header,
    setting_values.check_cookie,
    setting_values.check_cookie_path,
    setting_values.check_cookie_domain,
    setting_values.check_exclusions,
    setting_values.check_anonymous_readers,
    setting_values.check_functions,
    models.check_any,
    models.check_names,
    models.check_options,
    news.check_fields,
    news.check_relations,
    news.check_rules,
    models.check_primary_keys,
    models.check_parents,
    models.check_count_fields,
    histories.check_counts,
    migrations.check_migrations,
    migrations.check_moves,
    unique_visitors.check_strategies,
    unique_visitors.check_reader_numbers,
    schedule.check_celery,
)
DATABASE_CHECKS = (layouts.check_tables, row_security.check_policies)


def check_setup(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Returns the messages of all checks.

    While a setting has a value of a wrong type, only the types are checked, because the other
    checks rely on them.
    """
    if setting_types.wrong_types():
        return _messages_of(TYPE_CHECKS)
    messages = _messages_of(CHECKS)
    for part in parts.installed():
        messages += _messages_of(part.checks())
    return messages


def _messages_of(checks: Sequence[Check]) -> list[CheckMessage]:
    """Returns the messages of these checks, in their order."""
    return [message for check in checks for message in check()]
