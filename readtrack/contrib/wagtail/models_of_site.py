"""The site's page models: which of them are counted, and what they get from this app."""

from typing import Any

from django.db.models import Model
from wagtail.models import PageViewRestriction, get_page_models

from readtrack.contrib.wagtail.panel import ReadTrackPanel
from readtrack.models import Tracked
from readtrack.models.tracked import COUNTS
from readtrack.subjects import is_counted


def base_model() -> Any:
    """Returns the model of which all page models are children. Wagtail 8 lets a site replace it."""
    return PageViewRestriction._meta.get_field("page").related_model


def counted_page_models() -> list[type[Model]]:
    """Returns the page models whose views are counted."""
    return [model for model in get_page_models() if is_counted(model)]


def prepare() -> None:
    """Keeps counts out of copies of pages, and adds the panel to the pages' forms."""
    for model in counted_page_models():
        if issubclass(model, Tracked):
            _leave_counts_out_of_copies(model)
        _add_panel(model)


def _leave_counts_out_of_copies(model: Any) -> None:
    """Makes copies and translations of pages begin at 0.

    Wagtail also copies objects that it made out of a revision. Their counts are plain numbers, as
    if the site had set them.
    """
    missing = [name for name in COUNTS if name not in model.exclude_fields_in_copy]
    model.exclude_fields_in_copy = [*model.exclude_fields_in_copy, *missing]


def _add_panel(model: Any) -> None:
    """Adds the panel to the tab "Promote", unless the model has a form or a panel of its own."""
    if hasattr(model, "edit_handler"):
        return
    panels = [*model.content_panels, *model.promote_panels, *model.settings_panels]
    if not any(isinstance(panel, ReadTrackPanel) for panel in panels):
        model.promote_panels = [*model.promote_panels, ReadTrackPanel()]
