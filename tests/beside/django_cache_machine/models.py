"""Stories whose querysets are cached."""

from caching.base import CachingManager, CachingMixin
from django.db import models

from readtrack.models import Tracked


class Story(CachingMixin, Tracked):
    title = models.CharField(max_length=50)

    objects = CachingManager()

    class Meta:
        base_manager_name = "objects"
