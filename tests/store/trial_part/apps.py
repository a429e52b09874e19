"""The configuration: keys of the subject, of its model, and of an effect that only Ann's views have."""

from collections.abc import Sequence

from readtrack.hits.hit import Hit
from readtrack.parts import CountingNeeds, Effect, EffectsOf, PartConfig
from readtrack.store.keys import Key, tag

of_model = Key("trial:model:{minute}:{model}", "hash", 60, "views by visitor")
of_subject = Key("trial:subject:{subject}", "hash", 60, "views by visitor")
of_effect = Key("trial:effect:{subject}", "string", 60, "views of the visitor Ann")


class TrialConfig(PartConfig):
    name = "tests.store.trial_part"

    def keys(self) -> Sequence[Key]:
        return (of_model, of_subject, of_effect)

    def counting_needs(self) -> CountingNeeds:
        return CountingNeeds(
            keys={"of_model": of_model, "of_subject": of_subject},
            needs=lambda name, label: label != "site.product",
            constants={"weight": 3},
        )

    def effects(self, label: str) -> EffectsOf:
        return _effects


def _effects(hit: Hit, subject: str) -> tuple[Effect, ...]:
    if hit.visitor.id != "ann":
        return ()
    return (Effect("trial", (of_effect.start(tag(subject)),), 2),)
