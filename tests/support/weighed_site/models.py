"""One model that is tracked, where readtrack is installed, and what it is news for."""

from typing import TYPE_CHECKING

from django.apps import apps
from django.db import models

if TYPE_CHECKING or not apps.is_installed("readtrack"):
    from django.db.models import Model as Base
else:
    from readtrack.models import Tracked as Base


class Category(models.Model):
    """What has a dot."""


class Post(Base):
    """What is viewed."""

    category = models.ForeignKey(Category, on_delete=models.CASCADE, null=True)
