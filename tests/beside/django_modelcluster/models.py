"""Notices, whose categories are linked when the notice is saved."""

from django.db import models
from modelcluster.fields import ParentalManyToManyField
from modelcluster.models import ClusterableModel

from readtrack.models import Tracked
from tests.site.models import Category


class Notice(Tracked, ClusterableModel):
    news_for = ["topics"]

    title = models.CharField(max_length=50)
    topics = ParentalManyToManyField(Category)
