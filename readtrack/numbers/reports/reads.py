"""Reads: how many views of a text were really read, and for how long."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from django.db.models import Model

from readtrack.hits.stages import BINS, ENGAGED, READS, StageName
from readtrack.numbers.reached import Reached
from readtrack.numbers.reports.hashes import hashes
from readtrack.reports.counts import views
from readtrack.subjects import counted_subject_of, subject_of


@dataclass(frozen=True, slots=True)
class Reading(Reached):
    """How the text of an object was read, or the texts of several objects together: how many views
    reached each stage, and what follows from it.
    """

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
    reached_stages = Reached.of(sum(views(objs).values()), counts)
    ratio = 0.0
    if reached_stages.views:
        ratio = reached_stages.reads / reached_stages.views
    return Reading(**asdict(reached_stages), ratio=ratio, seconds=median(counts))


def reads(obj: Model) -> int:
    """Returns the live reads of an object; see `reading`. Raises TypeError for an object that has
    no counts.
    """
    return reached(obj, READS)


def reached(obj: Model, stage: StageName) -> int:
    """Returns how many views of an object have reached a stage.

    Raises TypeError for an object that has no counts.
    """
    subject = counted_subject_of(obj)
    hashes_by_name = hashes([subject], ["reading"])
    return hashes_by_name["reading", subject][stage]


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
