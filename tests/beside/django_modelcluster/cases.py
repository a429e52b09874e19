"""Links of django-modelcluster, which a row keeps until it is saved, make their categories unread."""

import pytest

from readtrack import reports, tracker
from tests.beside.django_modelcluster.models import Notice
from tests.site.models import Category
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_saved_row_is_news_for_what_it_was_given_before() -> None:
    old, new, other = (factories.category() for _ in range(3))
    reader = factories.user()

    def unread_after(notice: Notice, *topics: Category) -> set[Category]:
        tracker.mark_read(reader, [old, new, other])
        notice.topics = topics
        notice.save()
        return reports.unread(reader, [old, new, other])

    notice = Notice(title="A")
    assert unread_after(notice, old) == {old}
    assert unread_after(notice, old, new) == {new}
    assert unread_after(Notice.objects.get(), new) == set()
