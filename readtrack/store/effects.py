"""What a counted view does beyond the plain counters: visitors by another strategy, days, the
funnel and dimensions. A site that needs none of them sends none of this.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from readtrack import buckets
from readtrack.conf import cached_setting, conf
from readtrack.hits.hit import Hit
from readtrack.store import counters, keys, uniques
from readtrack.store.uniques import Effect
from readtrack.subjects import enters_funnel, label_in, model_with_label


class Profile(NamedTuple):
    """What views of a model do beyond the plain counters."""

    strategy: uniques.Strategy
    has_days: bool  # visitors of each day are kept
    stage: str  # first stage of the funnel that each view enters; "" for none


class Options(NamedTuple):
    """The effects of a hit's views, as record.lua takes them."""

    keys: Sequence[str]  # of all effects
    json: str


@cached_setting()
def profile_of(label: str) -> Profile | None:
    """Returns what the model's views do beyond the plain counters; None for nothing."""
    strategy = uniques.strategy_of(label)
    stage = ""
    if conf.FUNNEL and enters_funnel(model_with_label(label)):
        stage = conf.FUNNEL[0]
    if strategy.name == "hll" and not conf.UNIQUE_DAYS and not stage:
        return None
    has_days = conf.UNIQUE_DAYS > 0 and bool(strategy.rows)
    return Profile(strategy, has_days, stage)


def options_of(hit: Hit, *, first_key: int) -> Options:
    """Returns the options of record.lua for the hit. `first_key` is the number of their first key,
    from 1.
    """
    names: list[str] = []
    views = []
    for subject in hit.views:
        calls = []
        for effect in effects_of(subject, hit):
            calls.append((effect.name, first_key + len(names), effect.argument))
            names += effect.keys
        views.append(calls)
    options = {
        "identities": len(hit.visitor.identities),
        "values": counters.VALUES,
        "pass": keys.funnel_pass.ttl,
        "effects": views,
    }
    return Options(names, json.dumps(options))


def effects_of(subject: str, hit: Hit) -> list[Effect]:
    """Returns what a counted view of the subject does beyond the plain counters."""
    label = label_in(subject)
    profile = profile_of(label) or Profile(uniques.strategy_of(label), has_days=False, stage="")
    effects: list[Effect] = []
    visitors = profile.strategy.effect(subject, hit)
    if visitors:
        effects.append(visitors)
    if profile.has_days:
        day = keys.day_visitors(buckets.day_bucket(hit.at), subject)
        effects.append(Effect("day", (day,), conf.UNIQUE_DAYS * keys.DAY))
    if profile.stage:
        passes = [keys.funnel_pass(who, subject) for who in hit.visitor.identities]
        effects.append(Effect("funnel", (keys.funnel(subject), *passes), profile.stage))
    for dimension, value in hit.dimensions:
        counts = keys.prefix() + keys.member(f"views:{dimension}", subject)
        effects.append(Effect("value", (counts,), value))
    return effects
