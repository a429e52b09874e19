"""`manage.py burst`: many people open one story within a minute, and an alert is made of it."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.management.base import BaseCommand
from django.test import RequestFactory
from django.utils import timezone

from demo_project.blog.models import Post
from demo_project.traffic.agents import MAC
from readtrack import tracker
from readtrack.alerts import minutes
from readtrack.alerts.run import send_alerts

READERS = 180
PLACE = 30  # of the story among the newest ones: it is some weeks old, so that nobody expects it


class Command(BaseCommand):
    """Makes a story popular all at once."""

    help = "Views an old story many times, and lets readtrack look for what is unusual."

    def handle(self, *args: Any, **options: Any) -> None:
        # An alert needs an hour for which Redis has been watched; the demo is younger than that.
        minutes.watched_since(at=timezone.now() - timedelta(hours=2))
        story = Post.objects.all()[PLACE]
        requests = RequestFactory()
        for number in range(READERS):
            request = requests.get(
                story.get_absolute_url(),
                REMOTE_ADDR=f"198.18.{number}.7",
                HTTP_USER_AGENT=f"Mozilla/5.0 ({MAC}; rv:147.0) Gecko/20100101 Firefox/147.0",
            )
            request.user = AnonymousUser()
            tracker.view(story, visitor=tracker.visitor(request))
        alerts = send_alerts()
        self.stdout.write(f"{len(alerts)} alert: {READERS} people opened “{story}”.")
