"""The metrics of the site, for Prometheus and other programs that read its formats."""

from django.contrib.auth.decorators import login_not_required
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from readtrack.metrics import scrapers


@login_not_required  # METRICS says who may read them
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """`GET metrics`: returns the metrics as OpenMetrics or as Prometheus's text, by `Accept`.

    The answer is 200 while Redis or SQL is down, and says so.
    """
    status = scrapers.refusal(request.META)
    if status:
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
        return HttpResponse(status=status, headers=headers)
    # Imported here, because a site without METRICS needs no prometheus-client.
    from readtrack.metrics.exposition import exposition

    answer, content_type = exposition(request.headers.get("Accept", ""))
    return HttpResponse(answer, content_type=content_type)


# With ATOMIC_REQUESTS, a database that is down would keep Django from calling the view.
for alias in connections:
    metrics = transaction.non_atomic_requests(using=alias)(metrics)
