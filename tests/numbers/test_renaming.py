"""The numbers of a category follow its new name."""

from datetime import date

import pytest

from readtrack import renames
from readtrack.numbers.models import BreakdownHistory, DayVisitors
from readtrack.numbers.sql import group_sums
from readtrack.sql import databases

pytestmark = pytest.mark.django_db(databases=["default", "lite"])

OLD = "shop.topic"
NEW = "shop.discussion"


def groups(database: str) -> tuple[set[str], set[str]]:
    """Returns the names of categories that have sums, and the subjects that have visitors."""
    sums = databases.rows(BreakdownHistory).values_list("field", flat=True)
    days = databases.rows(DayVisitors).values_list("subject", flat=True)
    return {*sums}, {*days}


def write_group(section: str) -> None:
    """Writes a sum and visitors of a category."""
    databases.rows(BreakdownHistory).create(
        subject="news.post", kind="section:views", hour=9, field=section, count=5
    )
    databases.rows(DayVisitors).create(
        subject=group_sums.visitors_of("news.post", "section", section),
        day=date(2026, 11, 20),
        visitors=5,
        sketch=b"HYLL",
    )


def test_the_numbers_of_a_category_follow_its_model_and_its_key(database: str) -> None:
    for section in (f"{OLD}:7", f"{OLD}:77", f"{OLD}s:7", ""):
        write_group(section)
    renames.rename_model(OLD, NEW, pks=[7, 77], using=None)
    names = {f"{NEW}:7", f"{NEW}:77", f"{OLD}s:7", ""}
    subjects = {group_sums.visitors_of("news.post", "section", name) for name in names}
    assert groups(database) == (names, subjects)
    renames.rename_subject(f"{NEW}:7", f"{NEW}:9", using=None)
    names = {f"{NEW}:9", f"{NEW}:77", f"{OLD}s:7", ""}
    subjects = {group_sums.visitors_of("news.post", "section", name) for name in names}
    assert groups(database) == (names, subjects)
