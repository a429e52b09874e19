"""The numbers and visitors of a category follow its new name."""

from django.db.models import Value
from django.db.models.functions import Concat, Length, Replace, Substr
from django.db.models.lookups import LessThanOrEqual

from readtrack.models import SUBJECT_LENGTH
from readtrack.numbers.models import BreakdownHistory, DayVisitors
from readtrack.numbers.sql import group_sums
from readtrack.numbers.sql.memberships import LONGEST_NAME
from readtrack.sql import databases, renaming


def rename_categories(before: str, after: str) -> None:
    """Gives the numbers and visitors of a category, or of all objects of a model, the new name.

    The names are subjects or labels. Names of categories that would be too long stay.
    """
    if before == after:
        return
    is_of_model = ":" not in before
    if is_of_model:
        before = f"{before}:"
        after = f"{after}:"
    sums = databases.rows(BreakdownHistory).filter(kind__startswith="section:")
    old_in_days = group_sums.visitors_of("", "section", before)
    new_in_days = group_sums.visitors_of("", "section", after)
    days = databases.rows(DayVisitors)
    if is_of_model:
        sums = sums.filter(field__startswith=before)
        days = days.filter(subject__contains=old_in_days)
    else:
        sums = sums.filter(field=before)
        days = days.filter(subject__endswith=old_in_days)
    more = max(0, len(after) - len(before))
    sums = sums.filter(LessThanOrEqual(Length("field"), Value(LONGEST_NAME - more)))
    days = days.filter(LessThanOrEqual(Length("subject"), Value(SUBJECT_LENGTH - more)))
    name = Concat(Value(after), Substr("field", len(before) + 1))
    renaming.move(BreakdownHistory, sums, field=name)
    subject = Replace("subject", Value(old_in_days), Value(new_in_days))
    renaming.move(DayVisitors, days, subject=subject)
