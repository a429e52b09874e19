"""What a counted view does beyond the plain counters: it may count a visitor by another strategy
than hll, and what the installed parts add.

For a view without any effect, nothing is sent.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from readtrack import parts
from readtrack.conf import cached_setting
from readtrack.hits.hit import Hit
from readtrack.parts import Effect, EffectsOf
from readtrack.store import uniques
from readtrack.subjects import label_in


class Options(NamedTuple):
    """The effects of a hit's views, as record.lua takes them."""

    keys: Sequence[str]  # the keys of all effects
    json: str  # what to do with them: see record.lua


@cached_setting("INSTALLED_APPS")
def makers(label: str) -> tuple[EffectsOf, ...]:
    """Returns the functions that tell the effects of views of the model."""
    found: list[EffectsOf] = []
    strategy = uniques.strategy_of(label)
    if strategy.rows and not uniques.counts_by_hll(label):
        found.append(strategy.effects)
    for part in parts.installed():
        maker = part.effects(label)
        if maker is not None:
            found.append(maker)
    return tuple(found)


def effects_of(hit: Hit) -> Sequence[Sequence[Effect]]:
    """Returns the effects of each view of the hit; nothing if no view has any."""
    effects_by_view = [effects_of_view(hit, subject) for subject in hit.views]
    return effects_by_view if any(effects_by_view) else ()


def effects_of_view(hit: Hit, subject: str) -> Sequence[Effect]:
    """Returns the effects of the hit's view of the subject."""
    effects: list[Effect] = []
    for maker in makers(label_in(subject)):
        effects += maker(hit, subject)
    return effects


def options_of(effects_by_view: Sequence[Sequence[Effect]], *, first_key: int) -> Options:
    """Returns the options of record.lua for the effects of each view of a hit.

    `first_key` is the index in KEYS that the first of their keys will have; Lua counts from 1.
    """
    key_names: list[str] = []
    options = []
    for effects_of_view in effects_by_view:
        options_of_view = []
        for effect in effects_of_view:
            first = first_key + len(key_names)
            key_names += effect.keys
            last = first_key + len(key_names) - 1
            options_of_view.append((effect.name, first, last, effect.argument))
        options.append(options_of_view)
    return Options(key_names, json.dumps(options))
