"""A file of the dashboard stays harmless in a spreadsheet, whatever separator that takes."""

import csv
import json
import re
from io import StringIO
from typing import Any

import pytest
from django.test import Client

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import counts, factories

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"
SEPARATORS = (",", ";", "\t")
NUMBER = re.compile(r"-?\d+(\.\d+)?")
# A spreadsheet computes a cell that begins with one of them; some skip spaces before it.
FORMULA = re.compile(r"\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")

TITLES = (
    "=1+1",
    "+1",
    "-1+1",
    "@SUM(1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    "\uff1d1+1",
    "a;=1+1",
    "a; =1+1",
    "a\t=1+1",
    "a\r=1+1",
    "a\n=1+1",
    "a\r\n+1",
    "a\x0b-1",
    "a\u2028@SUM(1)",
    "a,=1+1",
    'a";=1+1',
    'a;"=1+1',
    'a;";=1+1',
    'a"\n"=1+1',
    "a;;;\t;@SUM(1)",
    '=cmd|" /C calc"!A1',
    "a;\uff0b1",
)


def export(client: Client, name: str, kind: str, **filters: str) -> str:
    answer: Any = client.get(DASHBOARD, {"table": name, "format": kind, **filters})
    return b"".join(answer.streaming_content).decode("utf-8-sig")


def computed_cells(content: str, separator: str) -> list[str]:
    """Returns the cells that a spreadsheet with that separator would compute."""
    rows = csv.reader(StringIO(content, newline=""), delimiter=separator)
    cells = [cell for row in rows for cell in row]
    # Formulas look at their cell without the quotes, which are no quotes in the midst of a cell.
    return [
        cell for cell in cells if not NUMBER.fullmatch(cell) and FORMULA.match(cell.lstrip(' "'))
    ]


def test_no_cell_of_a_file_is_a_formula_with_any_separator(admin_client: Client) -> None:
    counts.view(*(factories.post(title=title) for title in TITLES))
    flush()
    content = export(admin_client, "most-viewed", "csv")
    assert len(content.splitlines()) == len(TITLES) + 1
    for separator in SEPARATORS:
        assert computed_cells(content, separator) == []


@pytest.mark.needs_parts("numbers")
def test_a_text_behind_numbers_is_no_formula_either(admin_client: Client) -> None:
    from readtrack.numbers.models import Note

    for title in TITLES:
        Note.objects.create(day=buckets.now().date(), text=title)
    content = export(admin_client, "over-time", "csv", period="today")
    for separator in SEPARATORS:
        assert computed_cells(content, separator) == []


def test_a_heading_out_of_the_address_is_no_formula(admin_client: Client, settings: Any) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    for title in TITLES:
        content = export(admin_client, "most-viewed", "csv", device=f"x{title}")
        for separator in SEPARATORS:
            assert computed_cells(content, separator) == []


def test_numbers_stay_numbers_and_texts_are_quoted(admin_client: Client) -> None:
    post = factories.post(title="Title")
    counts.view(post, post)
    flush()
    heading, row = export(admin_client, "most-viewed", "csv").splitlines()
    assert heading.startswith('"Title","Views"')
    assert row.startswith('"Title",2,')
    assert json.loads(export(admin_client, "most-viewed", "json"))["rows"][0][:2] == ["Title", 2]


@pytest.mark.needs_parts("dashboard")
def test_a_title_that_no_file_can_hold_does_not_end_the_file(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = factories.post()
    counts.view(post)
    flush()
    monkeypatch.setattr(Post, "__str__", lambda post: "a\ud800b")
    assert '"a b",1' in export(admin_client, "most-viewed", "csv")
    assert json.loads(export(admin_client, "most-viewed", "json"))["rows"][0][0] == "a b"


def test_the_name_of_a_file_is_not_made_of_the_address(admin_client: Client) -> None:
    assert factories.post().pk
    post = factories.post()
    for name in ('x"; filename="a.exe', "over-time\r\nX-Header: 1", subject_of(post)):
        answer = admin_client.get(DASHBOARD, {"table": name, "format": "csv"})
        assert answer.status_code == 404
