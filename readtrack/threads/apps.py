"""The app's configuration: what read state by reader adds to readtrack."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from readtrack.parts import Check, PartConfig

if TYPE_CHECKING:
    from django.db.models import Model
    from django.template import Library

    from readtrack.flush.steps import Steps
    from readtrack.store.keys import Key
    from readtrack.store.read_state.forms import Form
    from readtrack.store.read_state.of_parts import KeysOfPart


class ThreadsConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.threads"]`"""

    name = "readtrack.threads"
    label = "readtrack_threads"
    verbose_name = _("Threads")
    setting = "THREADS"
    setting_about = (
        'how long what is new in a thread is known: "days" (90). An entry of MODELS may also have'
        ' "boards": ["field"] and "is_public": "path of a function"'
    )
    scripts = (
        "copy_times",
        "last_news",
        "mark_all_positions",
        "mark_read_positions",
        "place_thread",
        "publish_positions",
        "raise_positions",
        "rename_boards",
        "restore_times",
        "unread_boards",
        "unread_news",
        "unread_positions",
    )
    forms = ("positions",)
    model_options = ("boards", "is_public")

    def ready(self) -> None:
        from readtrack.threads import receivers

        receivers.connect()

    def setting_keys(self) -> type[Any]:
        from readtrack.threads.options import ThreadsOptions

        return ThreadsOptions

    def checks(self) -> Sequence[Check]:
        from readtrack.threads import checks

        return (checks.check_options, checks.check_boards)

    def keys(self) -> "Sequence[Key]":
        from readtrack.threads import keys

        return keys.ROWS

    def read_state_forms(self) -> "Mapping[str, Form]":
        from readtrack.threads import forms

        return forms.forms_by_label()

    def derived_categories(self) -> "Iterable[type[Model]]":
        from readtrack.threads import paths

        for model in paths.models_in_boards():
            yield from paths.board_paths(model).values()

    def keys_of_read_state(self) -> "KeysOfPart":
        from readtrack.threads.read_times import KeysOfThreads

        return KeysOfThreads()

    def flush_steps(self) -> "type[Steps]":
        from readtrack.threads.flushing import ThreadsSteps

        return ThreadsSteps

    def rename(self, before: str, after: str) -> None:
        from readtrack.threads import read_times

        read_times.rename(before, after)

    def erase_user(self, pk: Any, *, is_dry_run: bool) -> int:
        from readtrack.threads import erasing

        return erasing.erase(pk, is_dry_run=is_dry_run)

    def add_tags(self, library: "Library") -> None:
        from readtrack.threads import tags

        library.simple_tag(tags.first_unread, takes_context=True)

    def jinja_functions(self) -> Mapping[str, Any]:
        from jinja2 import pass_context

        from readtrack.threads import tags

        return {"first_unread": pass_context(tags.first_unread)}
