"""The tag of recently viewed objects, for Django's templates and for Jinja2."""

from typing import Any

from django.apps import apps

from readtrack.hits import visitors
from readtrack.page.stream import outside_coroutine
from readtrack.page.tags import recorder_of, request_of
from readtrack.recent import openings, reports
from readtrack.recent.options import recent_options
from readtrack.store.circuit import fail_open


def recently_viewed(context: Any, limit: int = 5, of: str = "") -> list[Any]:
    """`{% recently_viewed limit=5 as posts %}` sets the objects that the reader opened last,
    without the one that the page itself shows: `{{ post.opened_at }}`.

    `of="blog.Post"` makes it a single model. There are none in a page that is the same for
    everybody. Each tag takes a round trip, and a query for each model.
    """
    request = request_of(context)
    recorder = recorder_of(request)
    if recorder is None or recorder.is_shared or not recent_options().labels:
        return []
    recorder.varies_by_reader = True
    # Of a DetailView the middleware learns later what the page shows.
    recorder.see(context)
    model = apps.get_model(of) if of else None

    def loaded() -> list[Any]:
        visitor = visitors.visitor(request, visitors.signed_in(request), named=False)
        visitor_id = openings.id_of(visitor)
        recorder.is_personal = recorder.is_personal or bool(visitor_id)
        found = fail_open(openings.openings, [], visitor_id)
        return reports.objects_of(found, limit, model=model, left_out=recorder.views)

    return outside_coroutine(loaded)
