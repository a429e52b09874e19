"""Objects with the most views of all time."""

from django.db.models import QuerySet

from readtrack import subjects
from readtrack.sql import row_counts
from readtrack.subjects import AnyModel


def most_viewed(of: "type[AnyModel] | QuerySet[AnyModel]", limit: int = 10) -> list[AnyModel]:
    """Returns the rows of a model or of a queryset with the most views, by SQL's counts, most
    viewed first. Leaves out rows without views. Raises TypeError for a model whose views are not
    counted.
    """
    if isinstance(of, type):
        of = of._default_manager.all()
    problem = subjects.why_not_counted(of.model)
    if problem:
        raise TypeError(problem)
    return [row for row, _counts in row_counts.most_viewed(of, limit)]
