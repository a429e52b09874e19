"""Seen views in the dashboard: a card, a series, and what lies between views and seen."""

import csv
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.test import Client

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.numbers.sql import history
from readtrack.numbers.tables import NOT_KNOWN
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_of
from tests.dashboard.test_page import DASHBOARD, add_views, told
from tests.support import counts, factories

pytestmark = pytest.mark.django_db


def add_seen(obj: Any, days_ago: int, seen: int) -> None:
    """Adds to the history of seen views of an object and of its model."""
    hour = buckets.hour_index(buckets.now() - timedelta(days=days_ago))
    subject = subject_of(obj)
    label = subject.partition(":")[0]
    rows = {history.of_stage("seen", name): RowCounts(seen, 0) for name in (subject, label)}
    history.store(rows, hour=hour)


def unseen(client: Client, **given: str) -> list[int | None]:
    """Returns how many views of each day were not seen."""
    asked = {**given, "table": "over-time", "format": "csv"}
    answer: Any = client.get(DASHBOARD, asked, follow=True)
    lines = csv.DictReader(StringIO(b"".join(answer.streaming_content).decode("utf-8-sig")))
    return [int(line["Not seen"]) if line["Not seen"] else None for line in lines]


@pytest.mark.parametrize("is_of_object", [False, True])
def test_seen_is_a_card_a_series_and_a_column_beside_what_is_not_seen(
    admin_client: Client, *, is_of_object: bool
) -> None:
    post = factories.post()
    add_views(post, 3, 40, reads=5)
    add_seen(post, 3, 25)
    flush()
    given = {"period": "7"}
    if is_of_object:
        given["object"] = subject_of(post)
    page = admin_client.get(DASHBOARD, {**given, "series": "seen"}, follow=True)
    shown = told(page.context)
    assert shown["Seen"][0] == "25"
    [figure] = [figure for figure in page.context["figures"] if figure.name == "seen"]
    assert figure.is_chosen
    assert "came to life in a browser" in page.text
    days = unseen(admin_client, **given)
    assert sum(number or 0 for number in days) == 15


@pytest.mark.parametrize(("views", "shown"), [(0, "0"), (29, "0"), (30, NOT_KNOWN)])
def test_only_many_views_without_a_read_say_that_no_template_marks_its_texts(
    admin_client: Client, views: int, shown: str
) -> None:
    post = factories.post()
    add_views(post, 20, 50, reads=10)
    add_views(post, 3, views)
    flush()
    for asked in ({}, {"object": subject_of(post)}):
        page: Any = admin_client.get(DASHBOARD, {"period": "7", **asked}, follow=True)
        [reads] = [figure for figure in page.context["figures"] if figure.name == "reads"]
        assert reads.value == shown
        assert bool(reads.remark) == (shown == NOT_KNOWN)


def test_a_site_whose_script_reports_nothing_sees_no_card_column_or_definition(
    admin_client: Client,
) -> None:
    post = factories.post()
    counts.view(post)
    flush()
    page = admin_client.get(DASHBOARD, {"series": "seen"})
    assert [figure.name for figure in page.context["figures"]] == ["views", "visitors", "reads"]
    assert "came to life in a browser" not in page.text
    assert "Not seen" not in page.text


def test_what_no_full_flush_has_added_up_is_not_taken_for_unseen(admin_client: Client) -> None:
    post = factories.post()
    add_views(post, 3, 40)
    add_seen(post, 3, 25)
    counts.view(post)
    days = unseen(admin_client, period="7")
    assert (days[-4], days[-1]) == (None, None)
    flush()
    assert unseen(admin_client, period="7")[-4:-1] == [15, 0, 0]
