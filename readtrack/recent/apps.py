"""The app's configuration: what the lists of recently viewed objects add to readtrack."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from readtrack.parts import CallsOf, Check, PartConfig

if TYPE_CHECKING:
    from django.template import Library

    from readtrack.store.keys import Key


class RecentConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.recent"]`"""

    name = "readtrack.recent"
    label = "readtrack_recent"
    verbose_name = _("Recently viewed")
    setting = "RECENT"
    setting_about = (
        'what each reader opened lately: "models" (whose objects are kept, such as ["blog.Post"]),'
        ' "kept" (objects of a reader, 20), "days" (30), "visitors" (True: of visitors with the'
        " cookie, too); {}: nothing is kept"
    )

    def checks(self) -> Sequence[Check]:
        from readtrack.recent import checks

        return (checks.check_setting,)

    def keys(self) -> "Sequence[Key]":
        from readtrack.recent import keys

        return (keys.recent,)

    def calls_of_hits(self) -> CallsOf | None:
        from readtrack.recent import options

        if not options.recent_options().labels:
            return None
        from readtrack.recent import openings

        return openings.calls_of_hit

    def add_tags(self, library: "Library") -> None:
        from readtrack.recent import tags

        library.simple_tag(tags.recently_viewed, takes_context=True)

    def jinja_functions(self) -> Mapping[str, Any]:
        from jinja2 import pass_context

        from readtrack.recent import tags

        return {"recently_viewed": pass_context(tags.recently_viewed)}

    def questions(self, question: Callable[..., Any]) -> Sequence[Any]:
        from readtrack.recent import questions

        return (questions.recently_viewed(question),)

    def forget_user(self, pk: Any) -> None:
        from readtrack.recent import openings

        openings.forget(pk)
