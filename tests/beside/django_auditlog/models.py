"""Stories whose changes are logged."""

from auditlog.registry import auditlog
from django.db import models

from readtrack.models import Tracked


class Story(Tracked):
    title = models.CharField(max_length=50)


auditlog.register(Story, exclude_fields=["view_count", "visitor_count"])
