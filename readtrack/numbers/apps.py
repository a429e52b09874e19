"""The app's configuration: numbers by time, which other parts need."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _

from readtrack.parts import Check, CountingNeeds, EffectsOf, PartConfig, ValuesOf

if TYPE_CHECKING:
    from django.db.models import Model
    from django.template import Library

    from readtrack.flush.steps import Steps
    from readtrack.management.subcommands.base import Line, Subcommand
    from readtrack.sql.row_counts import RowCounts
    from readtrack.store.counters import Stored


class NumbersConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.numbers"]`"""

    name = "readtrack.numbers"
    label = "readtrack_numbers"
    verbose_name = _("Numbers")
    uses = ("readtrack.networks",)
    setting = "NUMBERS"
    setting_about = "which numbers there are by time and by value, and what rankings go by"
    model_options = ("published_field", "publication_notes")
    scripts = (
        "add_visitors",
        "recent_views",
        "recent_visitors",
        "shorten_hours",
        "totals_and_hours",
        "unite_days",
        "views_by_minute",
    )

    def setting_keys(self) -> type[Any]:
        from readtrack.numbers.options import NumbersOptions

        return NumbersOptions

    def checks(self) -> Sequence[Check]:
        from readtrack.numbers import checks

        return (
            checks.check_funnel,
            checks.check_dimensions,
            checks.check_own_hosts,
            checks.check_options,
            checks.check_published_fields,
        )

    def dimensions(self) -> Sequence[str]:
        from readtrack.numbers import dimensions

        return dimensions.names()

    def values_function(self) -> ValuesOf | None:
        from readtrack.numbers import dimensions

        return dimensions.values if dimensions.names() else None

    def asks_site_about_requests(self) -> bool:
        from readtrack.numbers import dimensions
        from readtrack.numbers.options import numbers_options

        return not dimensions.BUILT_IN_NAMES.issuperset(numbers_options().dimensions)

    def stages(self) -> Sequence[str]:
        from readtrack.numbers.options import numbers_options

        return numbers_options().funnel

    def trends_by_seen(self) -> bool:
        from readtrack.numbers.options import numbers_options

        return numbers_options().rank_by == "seen"

    def ready(self) -> None:
        post_migrate.connect(begin_history, sender=self)

    def subcommands(self) -> "Sequence[Subcommand]":
        from readtrack.numbers.daily_view import DailyView
        from readtrack.numbers.subcommand import Note

        return (Note(), DailyView())

    def flush_steps(self) -> "type[Steps]":
        from readtrack.numbers.flush.steps import NumbersSteps

        return NumbersSteps

    def stored_counters(self, names: Sequence[str]) -> "Mapping[str, Stored]":
        from readtrack.numbers.flush import steps as flushing

        return flushing.stored_counters(names)

    def settled(self, counts: "Mapping[str, RowCounts]") -> None:
        from readtrack.numbers.flush import steps as flushing

        flushing.settled(counts)

    def counting_needs(self) -> CountingNeeds:
        from readtrack.numbers import counted

        return counted.counting_needs()

    def effects(self, label: str) -> EffectsOf:
        from readtrack.numbers import counted

        return counted.effects_of_model(label)

    def rename(self, before: str, after: str) -> None:
        from readtrack.numbers import renaming

        renaming.rename_categories(before, after)

    def add_tags(self, library: "Library") -> None:
        from readtrack.numbers import tags

        tags.add(library)

    def jinja_functions(self) -> Mapping[str, Any]:
        from readtrack.numbers import tags

        return tags.jinja_functions()

    def place_panel(self, response: Any, content: bytes, user: Any | None) -> bytes:
        from readtrack.numbers import panel

        return panel.placed(response, content, user)

    def shown(self, obj: "Model", *, has_redis: bool) -> "Sequence[Line]":
        from readtrack.numbers import shown

        return [*shown.lines(obj, has_redis=has_redis)]


def begin_history(sender: Any, *, using: str, **kwargs: Any) -> None:
    """Receives post_migrate, and begins history where the migration has made its table."""
    plan = kwargs.get("plan")
    if plan:
        from readtrack.numbers import beginning

        beginning.on_migrate(using, plan)
