"""Lua of the installed parts, joined into the scripts that count views.

A line such as `-- parts: counted` in a script is replaced by what the installed parts do there, in
the order of INSTALLED_APPS. So a part that is not installed costs a view nothing: no key, no
argument and no line of Lua. All processes of a site have the same apps, so their scripts have the
same digest.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from readtrack import parts
from readtrack.conf import cached_setting
from readtrack.parts import CountingNeeds, PartConfig


class PartKeys(NamedTuple):
    """The names in Lua of the keys that the parts need of a view, in the order of KEYS."""

    of_seen: tuple[str, ...]  # with the subject in their name, only for a view whose page was seen
    of_subject: tuple[str, ...]  # with the subject in their name
    of_model: tuple[str, ...]  # with only its model


class CountingPart(NamedTuple):
    """A part that does something in the scripts that count views."""

    part: PartConfig
    needs: CountingNeeds

    @property
    def keys(self) -> PartKeys:
        """The keys that the part needs of a view."""
        of_subject: list[str] = []
        of_model: list[str] = []
        for name, row in self.needs.keys.items():
            if row.pattern.endswith("{subject}"):
                of_subject.append(name)
            else:
                of_model.append(name)
        return PartKeys(tuple(self.needs.keys_if_seen), tuple(of_subject), tuple(of_model))

    def fragment(self, name: str) -> str:
        """Returns the source of a file in the part's folder `lua`; "" if it has none."""
        path = files(self.part.name).joinpath("lua", f"{name}.lua")
        if not path.is_file():
            return ""
        return path.read_text(encoding="utf-8")

    def block(self, fragment: str, *, key_lines: Sequence[str] = ()) -> str:
        """Returns the fragment as a block of Lua, so that its locals are no others' locals.

        The block begins with the lines that name its keys, and with the constants that it uses.
        """
        lines = [f"do -- {self.part.name}", *key_lines]
        for name, number in self.needs.constants.items():
            if re.search(rf"\b{name}\b", fragment):
                lines.append(f"local {name} = {number:d}")
        return "\n".join([*lines, fragment.rstrip("\n"), "end"])


@cached_setting("INSTALLED_APPS")
def counting_parts() -> tuple[CountingPart, ...]:
    """Returns the parts that have Lua in the scripts that count views, in the order of
    INSTALLED_APPS.
    """
    counting: list[CountingPart] = []
    for part in parts.installed():
        needs = part.counting_needs()
        if needs is not None:
            counting.append(CountingPart(part, needs))
    return tuple(counting)


@cached_setting("INSTALLED_APPS")
def part_keys() -> PartKeys:
    """Returns the keys that all parts need of a view."""
    of_seen: list[str] = []
    of_subject: list[str] = []
    of_model: list[str] = []
    for counting in counting_parts():
        of_seen += counting.keys.of_seen
        of_subject += counting.keys.of_subject
        of_model += counting.keys.of_model
    return PartKeys(tuple(of_seen), tuple(of_subject), tuple(of_model))


def keys() -> str:
    """Returns the Lua that tells how many keys the parts need of a view."""
    numbers = ", ".join(str(len(names)) for names in part_keys())
    return f"local SEEN_KEYS, SUBJECT_KEYS, MODEL_KEYS = {numbers}"


def functions() -> str:
    """Returns the Lua of the functions that the parts' other Lua calls."""
    fragments = [counting.fragment("functions").rstrip("\n") for counting in counting_parts()]
    return "\n".join(filter(None, fragments))


def counted() -> str:
    """Returns the Lua that each counted view runs for the parts."""
    blocks = []
    subject_place = 0  # of the part's first key with the subject in its name, among all parts' keys
    model_place = 0
    for counting in counting_parts():
        _, of_subject, of_model = counting.keys
        key_lines = []
        for place, name in enumerate(of_subject, start=subject_place):
            key_lines.append(f"local {name} = KEYS[subject_key + {place}]")
        for place, name in enumerate(of_model, start=model_place):
            key_lines.append(f"local {name} = KEYS[model_key + {place}]")
        subject_place += len(of_subject)
        model_place += len(of_model)
        fragment = counting.fragment("counted")
        if fragment:
            blocks.append(counting.block(fragment, key_lines=key_lines))
    return "\n".join(blocks)


def seen() -> str:
    """Returns the Lua that each view of a seen page runs for the parts."""
    blocks = []
    place = 0  # of the next key among all parts' keys of seen pages
    for counting in counting_parts():
        key_lines = []
        for name in counting.keys.of_seen:
            key_lines.append(f"local {name} = KEYS[seen_key + {place}]")
            place += 1
        fragment = counting.fragment("seen")
        if fragment:
            blocks.append(counting.block(fragment, key_lines=key_lines))
    return "\n".join(blocks)


def effects() -> str:
    """Returns the Lua with the effects of the parts."""
    blocks = []
    for counting in counting_parts():
        fragment = counting.fragment("effects")
        if fragment:
            blocks.append(counting.block(fragment))
    return "\n".join(blocks)


PLACES: Mapping[str, Callable[[], str]] = {
    "keys": keys,
    "functions": functions,
    "counted": counted,
    "seen": seen,
    "effects": effects,
}
