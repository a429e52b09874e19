"""An article that grew, and the sites that its readers came from."""

from collections.abc import Mapping
from typing import Any

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.models import BreakdownHistory, DayBreakdown, History
from readtrack.subjects import label_of, subject_of
from tests.site.models import Article
from tests.support import usual

#: Views by the days ago that they came, and by the site that they came from.
VIEWS: Mapping[int, Mapping[str, int]] = {
    40: {"direct": 5},
    9: {"direct": 60, "news.example": 40},
    3: {"direct": 30, "news.example": 30},
    2: {"direct": 50, "news.example": 710},
}


def story_that_grew() -> Article:
    """Returns an old article with more views in the last seven days than before, most from one site.

    The site needs the dimension "referrer". Another article has the same sources.
    """
    usual.begin()
    published = buckets.now() - 60 * buckets.DAY
    all_views = sum(sum(views_by_site.values()) for views_by_site in VIEWS.values())
    made = Article.objects.create(published_at=published, view_count=all_views)
    other = Article.objects.create(published_at=published)
    grow(made, other)
    return made


def grow(made: Any, other: Any) -> None:
    """Stores the views of both objects of a model, and the sites that their readers came from."""
    label = label_of(type(made))
    turned_on = buckets.hour_index(buckets.now()) - 61 * 24
    BreakdownHistory.objects.create(
        subject=label, kind="views:referrer", hour=turned_on, field="direct", count=1
    )
    views = 0
    for age, views_by_site in VIEWS.items():
        day = local_time.today() - age * buckets.DAY
        hour = local_time.first_hour_of(day) + 9
        views += sum(views_by_site.values())
        for subject, number in ((subject_of(made), views), (label, 2 * views)):
            # A site's own views may be of the same hour.
            History.objects.update_or_create(
                subject=subject, hour=hour, defaults={"views": number, "visitors": 0}
            )
        for subject in (subject_of(made), subject_of(other)):
            for site, count in views_by_site.items():
                DayBreakdown.objects.create(
                    subject=subject, kind="views:referrer", day=day, field=site, count=count
                )
