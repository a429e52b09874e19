"""`manage.py burst`: many people open one story within a minute, and an alert is made of it.

Some read the newest stories, so that the list of the last hour has more than one.
"""

import random
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.management.base import BaseCommand
from django.test import RequestFactory
from django.utils import timezone

from demo_project.blog.models import Post
from demo_project.blog.past import COUNTRIES
from demo_project.traffic.agents import MAC
from readtrack import tracker
from readtrack.alerts import minutes
from readtrack.alerts.run import send_alerts
from readtrack.flush.run import flush
from readtrack.hits.hit import Hit
from readtrack.subjects import subject_of

READERS = 180
PLACE = 30  # of the story among the newest ones: it is some weeks old, so that nobody expects it
SOURCE = (("channel", "social"), ("referrer", "news.ycombinator.com"))  # where all come from
NEWEST = 9  # stories that are read, too; fewer people read each one than the one before


class Command(BaseCommand):
    """Makes a story popular all at once."""

    help = "Views an old story many times, and lets readtrack look for what is unusual."

    def handle(self, *args: Any, **options: Any) -> None:
        # An alert needs an hour for which Redis has been watched; the demo is younger than that.
        minutes.watched_since(at=timezone.now() - timedelta(hours=2))
        story = Post.objects.all()[PLACE]
        _view(story, readers=READERS, place=PLACE)
        for place, new_story in enumerate(Post.objects.all()[:NEWEST]):
            _view(new_story, readers=2 * (NEWEST - place), place=place)
        # The last flush may be long ago on a slow machine, which would be an alert, too.
        flush(only_changed=True)
        tracker.refresh_trending()
        alerts = send_alerts()
        self.stdout.write(f"{len(alerts)} alert: {READERS} people opened “{story}”.")


def _view(story: Post, *, readers: int, place: int) -> None:
    """Views the story, by so many visitors. Each has an address of the place's own."""
    requests = RequestFactory()
    countries = random.choices([*COUNTRIES], weights=[*COUNTRIES.values()], k=readers)
    for number, country in enumerate(countries):
        request = requests.get(
            story.get_absolute_url(),
            REMOTE_ADDR=f"198.18.{number}.{place + 1}",
            HTTP_USER_AGENT=f"Mozilla/5.0 ({MAC}; rv:147.0) Gecko/20100101 Firefox/147.0",
        )
        request.user = AnonymousUser()
        hit = Hit(
            tracker.visitor(request),
            timezone.now(),
            views=(subject_of(story),),
            dimensions=(*SOURCE, ("device", "desktop"), ("country", country)),
        )
        tracker.record(hit)
