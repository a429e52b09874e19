"""The setting MODELS: what a site says about models that are not its own to change."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from readtrack.conf import cached_setting, conf


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What MODELS says about one model. The fields are the keys that an entry may have."""

    counted: bool = False  # its views count without Tracked; the counts are in our own table
    news_for: tuple[str, ...] | None = (
        None  # fields to what a new row makes unread; None: as its parent
    )
    read_state: bool | str = False  # it has dots, although no news_for points at it


KEYS = tuple(ModelOptions.__dataclass_fields__)


@cached_setting()
def registry() -> Mapping[str, ModelOptions]:
    """Returns the options by the label of the model, in lower case.

    A check reports what has the wrong type; until it is corrected, it says nothing.
    """
    return MappingProxyType(
        {str(label).lower(): _options(entry) for label, entry in conf.MODELS.items()}
    )


def _options(entry: Any) -> ModelOptions:
    """Returns the options of one entry of MODELS."""
    if not isinstance(entry, dict):
        return ModelOptions()
    fields = entry.get("news_for")
    return ModelOptions(
        counted=entry.get("counted") is True,
        news_for=tuple(fields) if isinstance(fields, (list, tuple)) else None,
        read_state=entry.get("read_state", False),
    )
