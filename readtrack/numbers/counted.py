"""What a counted view writes in Redis for numbers by time and by value."""

from functools import lru_cache, partial

from readtrack import parts
from readtrack.conf import cached_setting
from readtrack.hits.hit import Hit
from readtrack.numbers import live_counters
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
            "hours": keys.hours,
            "day_visitors": keys.day_visitors,
            "model_hour": keys.model_hour,
        },
        needs=_needs,
        constants={
            "hours_life": keys.hours.ttl,
            "most_hours": live_counters.HOURS_KEPT,
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
    stages = parts.stages()
    if stages and enters_funnel(model_with_label(label)):
        return partial(_entry_and_values, stage=stages[0])
    return _values


def _values(hit: Hit, subject: str) -> tuple[Effect, ...]:
    """Returns the effects that count the view by the values of its dimensions."""
    if not hit.dimensions:
        return ()
    tag = ""
    if keys.is_divided():
        tag = keys.tag(subject)
    return _effects_of(hit.dimensions, keys.prefix(), tag)


@lru_cache(maxsize=1024)  # because most views come from a few places
def _effects_of(
    dimensions: tuple[tuple[str, str], ...], prefix: str, tag: str
) -> tuple[Effect, ...]:
    """Returns the effects of views with these values of dimensions in the tag's partition."""
    found = []
    for dimension, value in dimensions:
        start = prefix + keys.member_start(f"views:{dimension}", tag)
        found.append(Effect("value", (start,), value))
    return tuple(found)


def _entry_and_values(hit: Hit, subject: str, *, stage: str) -> tuple[Effect, ...]:
    """Returns the effect by which the view enters the funnel's first stage, and those of its
    values.
    """
    tag = keys.tag(subject)
    passes = [keys.funnel_pass.start(tag, identity) for identity in hit.visitor.identities]
    entry = Effect("funnel", (keys.funnel.start(tag), *passes), stage)
    return (entry, *_values(hit, subject))
