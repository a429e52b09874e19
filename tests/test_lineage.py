"""SQL follows Redis step by step, and knows one that is not its own."""

import pytest

from readtrack import lineage
from readtrack.models import Lineage

pytestmark = pytest.mark.django_db(databases=["default", "lite"])


@pytest.mark.usefixtures("database")
def test_sql_follows_only_from_where_it_is() -> None:
    assert lineage.head() == 0
    assert lineage.follow(10, previous=0)
    assert lineage.follow(10, previous=0)
    assert lineage.follow(20, previous=10)
    assert not lineage.follow(30, previous=10)
    assert lineage.head() == 20
    assert str(Lineage.objects.get()) == "20"
