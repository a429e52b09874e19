"""The setting MODELS: options of models that are not the site's own, which it cannot change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from readtrack import parts
from readtrack.conf import cached_setting, conf


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of one model. All fields but `of_parts` are keys that its entry may have."""

    # The views of its objects are counted although it does not extend Tracked. The counts are then
    # in a table of readtrack.
    counted: bool = False
    # Names of the fields that lead to the objects that a new row makes unread. None: those of the
    # parent model.
    news_for: tuple[str, ...] | None = None
    # Name of the foreign key to the author of a row, who gets no dot for it. None: as `news_for`.
    news_author: str | None = None
    # Path of a function that takes a row, and returns True if it is news. None: as `news_for`.
    is_news: str | None = None
    # Its objects have read state although no `news_for` leads to them. True for the form that DOTS
    # names, else the name of a form.
    read_state: bool | str = False
    # The keys that installed parts add, as the site gives them.
    of_parts: Mapping[str, Any] = field(default_factory=dict)


def known_keys() -> tuple[str, ...]:
    """Returns the keys that an entry of MODELS may have: of the core, and of installed parts."""
    of_core = [name for name in ModelOptions.__dataclass_fields__ if name != "of_parts"]
    return (*of_core, *parts.model_options())


@cached_setting("INSTALLED_APPS")
def registry() -> Mapping[str, ModelOptions]:
    """Returns the options by the label of the model in small letters: "shop.product".

    A value of a wrong type is left out; a check reports it.
    """
    options = {str(label).lower(): _options(entry) for label, entry in conf.MODELS.items()}
    return MappingProxyType(options)


def _options(entry: Any) -> ModelOptions:
    """Returns the options of one entry of MODELS."""
    if not isinstance(entry, dict):
        return ModelOptions()
    news_for = None
    field_names = entry.get("news_for")
    if isinstance(field_names, (list, tuple)):
        news_for = tuple(field_names)
    return ModelOptions(
        counted=entry.get("counted") is True,
        news_for=news_for,
        news_author=_text(entry.get("news_author")),
        is_news=_text(entry.get("is_news")),
        read_state=entry.get("read_state", False),
        of_parts={name: entry[name] for name in parts.model_options() if name in entry},
    )


def _text(value: Any) -> str | None:
    """Returns the value if it is text, else None."""
    if not isinstance(value, str):
        return None
    return value
