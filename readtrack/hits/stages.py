"""Stages of a view: it was seen, a person engaged with the page, the text was read.

The parts that count stages, and those that show them, have this list in common.
"""

from typing import Any, Final, Literal, NamedTuple

from django.utils.translation import gettext_lazy

# Seconds of engagement that are counted. A view that has reached a bin has reached all lower bins.
BINS = (5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 675, 1000, 1500)

SEEN: Final = "seen"
ENGAGED: Final = "engaged"
READS: Final = "reads"
StageName = Literal["seen", "engaged", "reads"]


class Stage(NamedTuple):
    """What people are told of a stage."""

    label: Any
    meaning: str  # which views have reached it, in English


# The stages in their order: each of them is some of the views of the one before it. Its name is the
# field of the hash `reading:…` that counts it, the prefix of its rows in History, its column in the
# SQL view, and its field of Reached.
STAGES: dict[StageName, Stage] = {
    SEEN: Stage(gettext_lazy("Seen in a browser"), "Views whose page was really seen"),
    ENGAGED: Stage(gettext_lazy("Reader was active"), "Views with two kinds of signs of a person"),
    READS: Stage(gettext_lazy("Read"), "Views whose text was really read"),
}
