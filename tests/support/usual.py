"""Articles with peers, so that something is usual."""

from datetime import timedelta
from typing import Any

from readtrack import buckets
from readtrack.numbers.models import History, Usual
from readtrack.numbers.sql import usual_renewal
from readtrack.numbers.sql.peers import FEWEST
from readtrack.sql.faults import Faults
from readtrack.subjects import subject_of
from tests.site.models import Article


def article(age: timedelta, *, views: int, **values: Any) -> Article:
    """Returns an article of that age, with all of its views in the hour of its publication."""
    published = buckets.now() - age
    made = Article.objects.create(
        **{"published_at": published, "view_count": views, "visitor_count": views, **values}
    )
    row = (subject_of(made), buckets.hour_index(published))
    History.objects.create(subject=row[0], hour=row[1], views=views, visitors=views)
    return made


def peers(*, views: int, number: int = FEWEST, **values: Any) -> list[Article]:
    """Returns articles of about 100 hours with so many views, and begins the model's history."""
    begin()
    return [
        article(timedelta(hours=100 + number), views=views, **values) for number in range(number)
    ]


def begin(*, days: int = 400) -> None:
    """Begins the history of articles."""
    hour = buckets.hour_index(buckets.now()) - days * 24
    History.objects.get_or_create(
        subject="site.article", hour=hour, defaults={"views": 1, "visitors": 0}
    )


def renew() -> None:
    """Computes what is usual anew."""
    Usual.objects.all().delete()
    usual_renewal.renew(at=buckets.now(), faults=Faults())
