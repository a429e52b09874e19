"""Stories with versions."""

import reversion
from django.db import models

from readtrack.models import Tracked


@reversion.register()
class Story(Tracked):
    title = models.CharField(max_length=50)
