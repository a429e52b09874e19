"""What a counted view writes in Redis for numbers by time and by value."""

from collections.abc import Sequence
from functools import partial

from readtrack.conf import cached_setting
from readtrack.hits.hit import Hit
from readtrack.numbers.options import enters_funnel, numbers_options
from readtrack.parts import CountingNeeds, Effect, EffectsOf
from readtrack.store import counters, keys, uniques
from readtrack.subjects import model_with_label


@cached_setting()
def counts_days(label: str) -> bool:
    """Returns True if the visitors of each day are counted for objects of the model."""
    return numbers_options().history and bool(uniques.strategy_of(label).rows)


def counting_needs() -> CountingNeeds:
    """Returns what lua/counted.lua and lua/effects.lua need."""
    return CountingNeeds(
        keys={
            "hour": keys.hour,
            "day_visitors": keys.day_visitors,
            "model_hour": keys.model_hour,
        },
        needs=_needs,
        constants={
            "hour_life": keys.hour.ttl,
            "day_life": keys.day_visitors.ttl,
            "model_hour_life": keys.model_hour.ttl,
            "pass_life": keys.funnel_pass.ttl,
            "most_values": counters.VALUES,
        },
    )


def _needs(name: str, label: str) -> bool:
    """Returns True if views of the model need the key called `name` in counted.lua."""
    return name != "day_visitors" or counts_days(label)


def effects_of_model(label: str) -> EffectsOf:
    """Returns the function that tells the effects of a view of the model."""
    if numbers_options().funnel and enters_funnel(model_with_label(label)):
        return partial(_entry_and_values, stage=numbers_options().funnel[0])
    return _values


def _values(hit: Hit, subject: str) -> Sequence[Effect]:
    """Returns the effects that count the view by the values of its dimensions."""
    if not hit.dimensions:
        return ()
    effects = []
    for dimension, value in hit.dimensions:
        counts = keys.prefix() + keys.member(f"views:{dimension}", subject)
        effects.append(Effect("value", (counts,), value))
    return effects


def _entry_and_values(hit: Hit, subject: str, *, stage: str) -> Sequence[Effect]:
    """Returns the effect by which the view enters the funnel's first stage, and those of its values."""
    passes = [keys.funnel_pass(identity, subject) for identity in hit.visitor.identities]
    entry = Effect("funnel", (keys.funnel(subject), *passes), stage)
    return [entry, *_values(hit, subject)]
