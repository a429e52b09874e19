"""Reads: how many views of a text were really read, and for how long."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Model

from readtrack.hits.stages import BINS, ENGAGED, READ, Stages
from readtrack.numbers.reports.hashes import hashes
from readtrack.reports.counts import views
from readtrack.subjects import counted_subject_of, subject_of


@dataclass(frozen=True, slots=True)
class Reading:
    """How the text of an object was read, or the texts of several objects together."""

    views: int
    seen: int  # views whose page came to life in a browser, as its script reports
    engaged: int  # views with signs of a person
    reads: int
    ratio: float  # of reads to views, 0 to 1
    seconds: int  # median engagement of the engaged views, within a quarter


def reading(objs: Model | Iterable[Model]) -> Reading:
    """Returns the live reads of one object, or of several together, in at most two round trips.

    Views are all views. So the ratio is low if the text was marked some time after it was
    published, or if the page's script is blocked.
    """
    objs = [objs] if isinstance(objs, Model) else list(objs)
    subjects = [subject_of(obj) for obj in objs]
    counts = sum(hashes(subjects, ["reading"]).values(), Counter[str]())
    stages = Stages.of(sum(views(objs).values()), counts)
    ratio = 0.0
    if stages.views:
        ratio = stages.reads / stages.views
    return Reading(
        views=stages.views,
        seen=stages.seen,
        engaged=stages.engaged,
        reads=stages.reads,
        ratio=ratio,
        seconds=median(counts),
    )


def reads(obj: Model) -> int:
    """Returns the live reads of an object; see `reading`. Raises TypeError for an object that has
    no counts.
    """
    return reached(obj, READ)


def reached(obj: Model, field: str) -> int:
    """Returns how many views of an object have reached a stage: SEEN, ENGAGED or READ.

    Raises TypeError for an object that has no counts.
    """
    subject = counted_subject_of(obj)
    hashes_by_name = hashes([subject], ["reading"])
    return hashes_by_name["reading", subject][field]


def median(counts: Counter[str]) -> int:
    """Returns the median engagement: the seconds that half of the engaged views reached.

    `counts` are those of a "reading" hash: how many views were engaged, and how many of them
    reached each number of seconds in BINS. Returns 0 without engaged views.
    """
    half = counts[ENGAGED] / 2
    if not half:
        return 0
    seconds_before = 0
    reached_before = counts[ENGAGED]
    for seconds in BINS:
        reached = counts[str(seconds)]
        if reached < half:
            # The median is between two bins. Views are taken to be spread evenly between them.
            width = seconds - seconds_before
            beyond = width * (reached_before - half) / (reached_before - reached)
            return round(seconds_before + beyond)
        seconds_before = seconds
        reached_before = reached
    return seconds_before  # half of the views reached the last bin
