"""Stories with a history, with and without the counts."""

import pghistory
import pgtrigger
from django.db import models

from readtrack.models import Tracked

COUNTS = ["view_count", "visitor_count"]


@pghistory.track(exclude=COUNTS)
class Story(Tracked):
    title = models.CharField(max_length=50)


@pghistory.track()
class LoudStory(Tracked):
    title = models.CharField(max_length=50)


class LockedStory(Tracked):
    title = models.CharField(max_length=50)

    class Meta:
        triggers = [
            pgtrigger.Protect(
                name="locked",
                operation=pgtrigger.Update,
                condition=pgtrigger.AnyChange(exclude=COUNTS),
            )
        ]
