"""Reads: how many views of a text were really read, and for how long."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Model

from readtrack.hits.reading import BINS, ENGAGED, READ
from readtrack.reports.counts import views
from readtrack.reports.hashes import hashes
from readtrack.subjects import counted_subject_of, subject_of


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of one text, or of those of several objects together."""

    views: int
    engaged: int  # views with signs of a person
    reads: int
    ratio: float  # of reads to views, 0 to 1
    seconds: int  # median engagement of the engaged views, within a quarter


def reading(objs: Model | Iterable[Model]) -> Reading:
    """Returns the reads, live, of one object or of several together, in at most two round trips.

    Views are all views: a ratio is low where the text was marked after it was published, or the
    script is blocked.
    """
    objs = [objs] if isinstance(objs, Model) else list(objs)
    counts = sum(hashes([subject_of(obj) for obj in objs], ["reading"]).values(), Counter[str]())
    total = sum(views(objs).values())
    return Reading(
        views=total,
        engaged=counts[ENGAGED],
        reads=counts[READ],
        ratio=counts[READ] / total if total else 0.0,
        seconds=median(counts),
    )


def reads(obj: Model) -> int:
    """Returns the reads of an object, live; see `reading`. Raises TypeError for an object that has
    no counts.
    """
    subject = counted_subject_of(obj)
    return hashes([subject], ["reading"])["reading", subject][READ]


def median(counts: Counter[str]) -> int:
    """Returns the seconds that half of the engaged views reached, by the numbers of views that
    reached each bin; 0 without engaged views.
    """
    half = counts[ENGAGED] / 2
    if not half:
        return 0
    seconds_before = 0
    reached_before = counts[ENGAGED]
    for seconds in BINS:
        reached = counts[str(seconds)]
        if reached < half:  # between two bins, as if views were spread evenly
            width = seconds - seconds_before
            beyond = width * (reached_before - half) / (reached_before - reached)
            return round(seconds_before + beyond)
        seconds_before = seconds
        reached_before = reached
    return seconds_before
