"""Pages: an index, stories that extend Tracked, and events that MODELS counts."""

from django.db import models
from django.http import HttpRequest, HttpResponse
from modelcluster.fields import ParentalManyToManyField
from modelcluster.models import ClusterableModel
from wagtail.admin.panels import FieldPanel, ObjectList
from wagtail.contrib.routable_page.models import RoutablePageMixin, path
from wagtail.models import Page, TranslatableMixin
from wagtail.snippets.models import register_snippet

from readtrack.models import Tracked


class Topic(TranslatableMixin):
    """A category with a locale."""

    name = models.CharField(max_length=50)


class Venue(models.Model):
    """A category without a locale."""

    name = models.CharField(max_length=50)


class IndexPage(RoutablePageMixin, Page):
    @path("feed/")
    def feed(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("<rss/>", content_type="application/rss+xml")

    @path("archive/")
    def archive(self, request: HttpRequest) -> HttpResponse:
        return self.render(request)


class StoryPage(Tracked, Page):
    news_for = ["topics"]
    news_author = "owner"

    body = models.TextField(blank=True)
    topics = ParentalManyToManyField(Topic, blank=True)

    content_panels = [*Page.content_panels, FieldPanel("body")]


class LongStoryPage(StoryPage):
    """Shares the counts of a story."""


class EventPage(Page):
    venue = models.ForeignKey(Venue, null=True, blank=True, on_delete=models.SET_NULL)


class PlainPage(Page):
    """Is not counted."""


class FormPage(Tracked, Page):
    """Has a form of its own, without the panel."""

    edit_handler = ObjectList(Page.content_panels)


@register_snippet
class Notice(Tracked, ClusterableModel):
    """A snippet, whose form keeps its links until the row is saved."""

    news_for = ["topics"]

    title = models.CharField(max_length=50)
    topics = ParentalManyToManyField(Topic, blank=True)

    panels = [FieldPanel("title"), FieldPanel("topics")]
