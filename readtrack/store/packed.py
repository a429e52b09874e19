"""The command that counts one view, made of one that is packed already.

To name the words of the command and to pack them takes the web process 60,000 instructions, and
22,000 here, because most commands of a minute differ only in the object and in the ids of the
visitor: these are joined with pieces that are packed already. In a cluster, and for a hit with
several views, `counting.count_views` makes the command.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

from hiredis import pack_command

from readtrack.conf import cached_setting
from readtrack.hits.hit import Hit, Outcome
from readtrack.parts import Effect
from readtrack.store import counting, effects, keys, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call
from readtrack.store.servers import SeveralServers
from readtrack.subjects import key_in, label_in

# What a form has in the place of each character of a text. No id and no subject contains them.
KEY, ID, SECOND_ID = "\1", "\2", "\3"
# Shapes of a model's views in a minute that have a form, and models and minutes that have forms:
# all of them take some 10 MB of a process at most. Primary keys such as slugs have many lengths.
MOST_SHAPES = 128
MOST_MINUTES = 64


# The texts that take the places of a form, by their indexes among the pieces of a command.
SUBJECT, VISITOR_ID, OTHER_ID, EFFECT_KEYS, EFFECT_OPTIONS = range(5)
NUMBER_OF_TEXTS = 5


class Form(NamedTuple):
    """A packed command in pieces: what is the same in all commands of the form, and places for what
    is not.
    """

    pieces: tuple[bytes, ...]  # which are the same
    # Puts the texts of a view, which are followed by the pieces, into the order of the command.
    in_order: Callable[[tuple[bytes, ...]], tuple[bytes, ...]]


class PackedEffects(NamedTuple):
    """The effects of a view, packed."""

    number_of_words: int  # in the command: the keys and the options
    number_of_keys: int
    keys: bytes
    form_subject: bytes  # what the keys have in the place of the subject
    options: bytes

    def keys_of(self, subject: bytes) -> bytes:
        """Returns the keys of a view of the subject."""
        if not self.keys:
            return b""
        return self.keys.replace(self.form_subject, subject)


NO_EFFECTS = PackedEffects(0, 0, b"", b"", b"")


class Forms(NamedTuple):
    """The forms of a model's views in a minute."""

    has_effects: bool  # the views may have some, see store/effects.py
    by_shape: dict[Hashable, Form | None]  # None for a shape that came once


def count_views(hit: Hit, *, hits: int = 0) -> Call[Outcome]:
    """Returns the call that counts the hit's views, as a packed command where there is one."""
    command = command_of(hit)
    if not command:
        return counting.count_views(hit, hits=hits)
    return call_of(hit, command)


def call_of(hit: Hit, command: bytes) -> Call[Outcome]:
    """Returns the call that counts the hit's view by its packed command."""
    decode = partial(counting.outcome_of, hit.views)
    return Call("record", (), (), decode, packed=command)


def command_of(hit: Hit) -> bytes:
    """Returns the packed command that counts the hit's view; b"" for a hit that has none."""
    if len(hit.views) != 1 or not _is_one_server():
        return b""
    [subject] = hit.views
    visitor_id, fallback_id, new_cookie, kind, _, _ = hit.visitor
    second_id = fallback_id or hit.stand_in
    texts = subject + visitor_id + second_id
    if not (texts.isascii() and texts.isprintable()):  # such as an id of the site's own
        return b""
    label = label_in(subject)
    forms = _forms_at(hit.at, keys.prefix(), label)
    of_effects = NO_EFFECTS
    if forms.has_effects:
        of_effects = _packed_effects(effects.effects_of_view(hit, subject), label, len(subject))
    shape = (
        len(subject),
        len(visitor_id),
        len(second_id),
        of_effects.number_of_words,
        kind,
        new_cookie != "",
        hit.stand_in != "",
        hit.is_report,
        hit.is_seen,
    )
    form = forms.by_shape.get(shape)
    if form is None:
        form = _new_form(forms, shape, hit, of_effects)
    if form is None:
        return b""
    subject_bytes = subject.encode()
    texts_of_view = (
        subject_bytes,
        visitor_id.encode(),
        second_id.encode(),
        of_effects.keys_of(subject_bytes),
        of_effects.options,
    )
    return b"".join(form.in_order(texts_of_view + form.pieces))


@cached_setting("CACHES", "INSTALLED_APPS", maxsize=1)
def _is_one_server() -> bool:
    """Returns True if each command goes to the same server, whatever its keys are."""
    return not (keys.is_divided() or isinstance(connect(), SeveralServers))


# All hits of a second have the same object as their time, by which the forms are found soonest.
@cached_setting("CACHES", "INSTALLED_APPS", "TIME_ZONE", maxsize=MOST_MINUTES)
def _forms_at(at: datetime, prefix: str, label: str) -> Forms:
    """Returns the forms of a model's views in the minute of `at`."""
    return _forms_of_minute(int(at.timestamp()) // keys.MINUTE, prefix, label)


@cached_setting("CACHES", "INSTALLED_APPS", "TIME_ZONE", maxsize=MOST_MINUTES)
def _forms_of_minute(minute: int, prefix: str, label: str) -> Forms:
    """Returns the forms of a model's views in a minute (since 1970)."""
    return Forms(has_effects=bool(effects.makers(label)), by_shape={})


def _new_form(forms: Forms, shape: Hashable, hit: Hit, of_effects: PackedEffects) -> Form | None:
    """Returns a form of that shape; None for a shape that comes for the first time, or is one too
    many, and for a subject of no model, which is too short for a form.

    To make a form takes as long as to make two commands.
    """
    if not key_in(hit.views[0]):
        return None
    if shape in forms.by_shape:
        form = forms.by_shape[shape] = _form(hit, of_effects)
        return form
    if len(forms.by_shape) < MOST_SHAPES:
        forms.by_shape[shape] = None
    return None


def _form(hit: Hit, of_effects: PackedEffects) -> Form:
    """Returns the form of hits like this one, whose views have such effects."""
    visitor = hit.visitor
    [subject] = hit.views
    form_subject = _form_subject(label_in(subject), len(subject))
    form_visitor = visitor._replace(
        id=ID * len(visitor.id), fallback_id=SECOND_ID * len(visitor.fallback_id)
    )
    form_hit = hit._replace(
        visitor=form_visitor,
        views=(form_subject,),
        stand_in=SECOND_ID * len(hit.stand_in),
    )
    key_names, arguments = counting.keys_and_arguments(form_hit)
    number_of_keys = len(key_names) + of_effects.number_of_keys
    head = ("EVALSHA", scripts.digest("record"), number_of_keys)
    number_of_words = len(head) + len(key_names) + len(arguments) + of_effects.number_of_words
    places = {
        form_subject.encode(): SUBJECT,
        form_visitor.id.encode(): VISITOR_ID,
        (form_visitor.fallback_id or form_hit.stand_in).encode(): OTHER_ID,
    }
    places.pop(b"", None)  # a visitor without another id
    a_place = re.compile(b"(" + b"|".join(map(re.escape, places)) + b")")
    pieces: list[bytes] = []
    order: list[
        int
    ] = []  # of the command: indexes of the texts of a view, and of pieces behind them
    packed_keys = b"*%d\r\n" % number_of_words + _packed((*head, *key_names))
    for packed, place_behind in ((packed_keys, EFFECT_KEYS), (_packed(arguments), EFFECT_OPTIONS)):
        for piece in a_place.split(packed):
            if piece in places:
                order.append(places[piece])
            else:
                order.append(NUMBER_OF_TEXTS + len(pieces))
                pieces.append(piece)
        order.append(place_behind)
    return Form(tuple(pieces), itemgetter(*order))


@lru_cache(maxsize=1024)  # because most views of a site have the same few effects
def _packed_effects(effects_of_view: tuple[Effect, ...], label: str, length: int) -> PackedEffects:
    """Returns the effects of a view, packed, with the subject of a form of that length."""
    if not effects_of_view:
        return NO_EFFECTS
    form_subject = _form_subject(label, length)
    options = effects.options([effects_of_view], [form_subject])
    return PackedEffects(
        number_of_words=len(options.keys) + 1,
        number_of_keys=len(options.keys),
        keys=_packed(options.keys),
        form_subject=form_subject.encode(),
        options=_packed((options.json,)),
    )


def _form_subject(label: str, length: int) -> str:
    """Returns what forms have in the place of a subject of the model, with as many characters."""
    return f"{label}:" + KEY * (length - len(label) - 1)


def _packed(words: Sequence[Any]) -> bytes:
    """Returns words within a command, without the number of all words at its beginning."""
    packed: bytes = pack_command(tuple(words))
    _, _, packed_words = packed.partition(b"\r\n")
    return packed_words
