"""What a counted view does beyond the plain counters: it may count a visitor by another strategy
than hll, and what the installed parts add.

For a view without any effect, nothing is sent.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
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
    functions: list[EffectsOf] = []
    strategy = uniques.strategy_of(label)
    if strategy.rows and not uniques.counts_by_hll(label):
        functions.append(strategy.effects)
    for part in parts.installed():
        function_of_part = part.effects(label)
        if function_of_part is not None:
            functions.append(function_of_part)
    return tuple(functions)


def effects_of_view(hit: Hit, subject: str) -> tuple[Effect, ...]:
    """Returns the effects of the hit's view of the subject."""
    effects: tuple[Effect, ...] = ()
    for function in makers(label_in(subject)):
        effects += tuple(function(hit, subject))
    return effects


def options_of(hit: Hit) -> Options | None:
    """Returns what record.lua is told of the effects of the hit's views: of all that they do beyond
    the plain counters. None if they do nothing more.
    """
    effects_by_view = [effects_of_view(hit, subject) for subject in hit.views]
    if not any(effects_by_view):
        return None
    return options(effects_by_view, hit.views)


def options(effects_by_view: Sequence[Sequence[Effect]], subjects: Sequence[str]) -> Options:
    """Returns what record.lua is told of the effects of the views of `subjects`."""
    key_names: list[str] = []
    sizes = []  # of the effects of each view: name, number of keys, and argument
    for effects, subject in zip(effects_by_view, subjects, strict=True):
        sizes_of_view = []
        for name, key_starts, argument in effects:
            key_names += [start + subject for start in key_starts]
            sizes_of_view.append((name, len(key_starts), argument))
        sizes.append(tuple(sizes_of_view))
    return Options(key_names, _as_json(tuple(sizes)))


# Most views of a site have the same few effects, and the encoder takes as long as all the rest of
# them.
@lru_cache(maxsize=1024)
def _as_json(sizes: tuple[tuple[tuple[str, int, str | int], ...], ...]) -> str:
    """Returns the options as record.lua takes them. The first key of all effects is number 1."""
    last = 0
    options = []
    for sizes_of_view in sizes:
        options_of_view = []
        for name, number_of_keys, argument in sizes_of_view:
            first = last + 1
            last += number_of_keys
            options_of_view.append((name, first, last, argument))
        options.append(options_of_view)
    return json.dumps(options)
