"""The hours of models in Redis: the views of all objects of a model in an hour, by partition."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from readtrack import buckets
from readtrack.store import counters, keys, scripts
from readtrack.store.counters import Total
from readtrack.store.scripts import Call

Hours = dict[tuple[str, int], Total]  # by model and hour since 1970
MODEL_HOURS = 48  # the last hours of models, which pages and each flush take from Redis


def calls(
    models: Sequence[str], hours: Sequence[int], *, tags: Sequence[str] = ()
) -> list[Call[Hours]]:
    """Returns calls that read the views of models by model and hour.

    The models are labels such as `blog.post`; in the results they have the tag of the partition
    behind them. Hours are since 1970. `tags` are those of the partitions; without them all
    partitions are read.
    """
    all_calls: list[Call[Hours]] = []
    prefix = keys.prefix()
    for tag in tags or keys.tags():
        models_and_hours = [(f"{model}{tag}", hour) for model in models for hour in hours]
        for portion in scripts.sliced(models_and_hours):
            by_member = {hour_name(model, hour): (model, hour) for model, hour in portion}
            hour_keys = [prefix + member for member in by_member]
            all_calls.append(counters.totals_by_member(tag, by_member, hour_keys))
    return all_calls


def by_model(answers: Iterable[Hours]) -> defaultdict[str, dict[int, Total]]:
    """Returns the results of `calls` by model, then by hour (since 1970)."""
    totals: defaultdict[str, dict[int, Total]] = defaultdict(dict)
    for answer in answers:
        for (model, hour), total in answer.items():
            totals[model][hour] = total
    return totals


def hour_name(model: str, hour: int) -> str:
    """Returns the member of `views:unsettled` that stands for a model's views in an hour.

    `model` is a label, with the tag of the partition behind it: `blog.post` or `blog.post:{rt07}`.
    The hour is counted since 1970.
    """
    label, colon, tag_in_braces = model.partition(":")
    bucket = buckets.bucket_of_hour(hour)
    return keys.model_hour.template % (colon + tag_in_braces, bucket, label)


def parse_hour(name: str) -> tuple[str, int]:
    """Returns the model and the hour in a member of `views:unsettled`, as `hour_name` has them."""
    family_and_tag, bucket, label = name.rsplit(":", 2)
    hash_tag = family_and_tag.removeprefix(keys.model_hour.family)
    return label + hash_tag, buckets.bucket_index(bucket)
