"""What a counted view does beyond the plain counters: it may count a visitor by another strategy
than hll, a stage of the funnel, and values of dimensions.

For a site that uses none of these, nothing is sent.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from readtrack.conf import cached_setting, conf
from readtrack.hits.hit import Hit
from readtrack.store import counters, keys, uniques
from readtrack.store.uniques import Effect
from readtrack.subjects import enters_funnel, label_in, model_with_label


class Profile(NamedTuple):
    """What views of a model do beyond the plain counters."""

    strategy: uniques.Strategy
    stage: str  # the first stage of the funnel, which each view enters; "" for no funnel


class Options(NamedTuple):
    """The effects of a hit's views, as record.lua takes them."""

    keys: Sequence[str]  # the keys of all effects
    json: str  # what to do with them: see record.lua


@cached_setting()
def profile_of(label: str) -> Profile | None:
    """Returns what the model's views do beyond the plain counters; None if they do nothing."""
    strategy = uniques.strategy_of(label)
    stage = ""
    if conf.FUNNEL and enters_funnel(model_with_label(label)):
        stage = conf.FUNNEL[0]
    if strategy.name == "hll" and not stage:
        return None
    return Profile(strategy, stage)


@cached_setting()
def counts_days(label: str) -> bool:
    """Returns True if the visitors of each day are counted for objects of the model."""
    return bool(conf.HISTORY) and bool(uniques.strategy_of(label).rows)


def options_of(hit: Hit, *, first_key: int) -> Options:
    """Returns the options of record.lua for the hit.

    `first_key` is the index in KEYS that the first of their keys will have; Lua counts from 1.
    """
    key_names: list[str] = []
    effects_by_view = []
    for subject in hit.views:
        effects_of_view = []
        for effect in effects_of(subject, hit):
            effects_of_view.append((effect.name, first_key + len(key_names), effect.argument))
            key_names += effect.keys
        effects_by_view.append(effects_of_view)
    options = {
        "identities": len(hit.visitor.identities),
        "values": counters.VALUES,
        "pass": keys.funnel_pass.ttl,
        "effects": effects_by_view,
    }
    return Options(key_names, json.dumps(options))


def effects_of(subject: str, hit: Hit) -> list[Effect]:
    """Returns what a counted view of the subject does beyond the plain counters."""
    label = label_in(subject)
    profile = profile_of(label) or Profile(uniques.strategy_of(label), stage="")
    effects: list[Effect] = []
    visitor_effect = profile.strategy.effect(subject, hit)
    if visitor_effect:
        effects.append(visitor_effect)
    if profile.stage:
        passes = [keys.funnel_pass(identity, subject) for identity in hit.visitor.identities]
        effects.append(Effect("funnel", (keys.funnel(subject), *passes), profile.stage))
    for dimension, value in hit.dimensions:
        counts = keys.prefix() + keys.member(f"views:{dimension}", subject)
        effects.append(Effect("value", (counts,), value))
    return effects
