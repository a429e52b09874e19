"""Lists of totals that other counters have counted."""

import gzip
import json
import zipfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from readtrack import reports, tracker
from readtrack.imports.models import Import
from readtrack.imports.totals import number_of, take_totals
from readtrack.numbers import reports as numbers_reports
from tests.site.models import Post
from tests.support import factories
from tests.support.rows import each_row

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls("tests.imports.urls")]


def written(folder: Path, text: str, *, encoding: str = "utf-8") -> str:
    path = folder / "views.csv"
    path.write_bytes(text.encode(encoding))
    return str(path)


def counts() -> dict[int, int]:
    """Returns the views of all posts, as pages show them; they are equal to those in SQL."""
    call_command("readtrack", "flush", verbosity=0)
    posts = {post: post.view_count for post in Post.objects.all()}
    assert reports.views([*posts]) == posts
    return {post.pk: views for post, views in posts.items()}


@pytest.fixture
def posts() -> list[int]:
    return [factories.post().pk for _ in range(3)]


def test_a_list_counts_once_beside_what_was_counted_live(posts: list[int], tmp_path: Path) -> None:
    first, second, third = posts
    tracker.record(factories.hit(f"site.post:{first}"))
    rows = [f"/posts/{first}/,100", f'https://old.example/posts/{second}/?page=2,"1,234"']
    rows += [f"site.Post:{third},7", f"/posts/{third}/,3", "/nowhere/,5", "site.post:999999,5"]
    path = written(tmp_path, "\n".join(["path,views", *rows, ""]))
    report = take_totals(path, dry_run=True)
    assert (report.read, report.counted) == (6, 1344)
    assert counts() == {first: 1, second: 0, third: 0}
    report = take_totals(path)
    assert (report.counted, report.skipped["no such object"]) == (1344, 1)
    assert report.not_resolved == {"/nowhere/": 1}
    assert counts() == {first: 101, second: 1234, third: 10}
    report = take_totals(path)
    assert (report.counted, report.skipped) == (0, {"imported before": 6})
    assert counts() == {first: 101, second: 1234, third: 10}


def test_a_list_with_a_wrong_number_is_not_imported_at_all(
    posts: list[int], tmp_path: Path
) -> None:
    rows = [f"/posts/{posts[0]}/,100", f"/posts/{posts[1]}/,12x", f"/posts/{posts[2]}/"]
    path = written(tmp_path, "\n".join(["path,views", *rows]))
    with pytest.raises(CommandError, match="line 3: '12x' is no number of views; line 4: ''"):
        call_command("readtrack", "import", "--totals", path)
    assert not Import.objects.exists()
    assert set(counts().values()) == {0}


def test_another_list_adds_up_and_that_is_told(posts: list[int], tmp_path: Path) -> None:
    take_totals(written(tmp_path, f"path,views\n/posts/{posts[0]}/,100\n"))
    report = take_totals(written(tmp_path, f"path,views\n/posts/{posts[0]}/,1\n"))
    assert report.notes[0].startswith("Other lists were imported before: ")
    assert counts()[posts[0]] == 101


@each_row(
    ("text", "encoding"),
    [
        ("path,views\n/posts/{}/,7\n", "utf-8-sig"),
        ("Views;Path\r\n7;/posts/{}/\r\n", "utf-8"),
        ("# Google Analytics\n# ---\n\npath\tusers\tviews\n/posts/{}/\t5\t7\n", "utf-8"),
        ('object,views\nsite.post:{},"7"\n\n', "utf-8"),
    ],
)
def test_lists_are_read_as_programs_write_them(text: str, encoding: str, tmp_path: Path) -> None:
    pk = factories.post().pk
    take_totals(written(tmp_path, text.format(pk), encoding=encoding))
    assert counts()[pk] == 7


@pytest.mark.parametrize(
    ("text", "encoding", "problem"),
    [
        ("", "utf-8", "needs a heading with the columns"),
        ("/posts/1/,5\n", "utf-8", "needs a heading with the columns"),
        ("path,hits\n/posts/1/,5\n", "utf-8", "needs a heading with the columns"),
        ("path,views\n/posts/1/,5\n", "utf-16", "is no text in UTF-8"),
    ],
)
def test_a_file_that_is_no_list_is_one_line_of_error(
    text: str, encoding: str, problem: str, tmp_path: Path
) -> None:
    path = written(tmp_path, text, encoding=encoding)
    with pytest.raises(CommandError, match=problem):
        call_command("readtrack", "import", "--totals", path)


def test_an_escaped_address_finds_its_page(tmp_path: Path) -> None:
    post = factories.post(title="Käse")
    take_totals(written(tmp_path, "path,views\n/titles/K%C3%A4se/,7\n"))
    assert counts() == {post.pk: 7}


@pytest.mark.parametrize("is_appended", [True, False])
def test_a_path_without_its_last_slash_is_that_of_the_page(
    tmp_path: Path, settings: Settings, *, is_appended: bool
) -> None:
    settings.APPEND_SLASH = is_appended
    pk = factories.post().pk
    report = take_totals(written(tmp_path, f"path,views\n/posts/{pk},7\n/nowhere,1\n"))
    assert counts() == {pk: 7 if is_appended else 0}
    assert report.not_resolved["/nowhere"] == 1


GOATCOUNTER = (
    "2Path,Title,Event,UserAgent,Browser,System,Session,Bot,Referrer,Referrer scheme,Screen size,"
    "Location,FirstVisit,Date"
)


def exported(folder: Path, pk: int, *, form: str) -> str:
    """Writes an export of GoatCounter: two views of the post in one hour, and one in the next."""
    noon = "2026-03-01T12:00:00Z"
    later = "2026-03-01T13:30:00Z"
    if form == "zip":
        path = folder / "goatcounter-export.zip"
        files = {
            "info.json": [{"export_version": 1.0, "goatcounter_version": "2.7"}],
            "paths.jsonl": [
                {"id": 1, "event": False, "path": f"/posts/{pk}", "title": "A post"},
                {"id": 2, "event": True, "path": "click", "title": ""},
            ],
            "hit_stats.jsonl": [
                {"hour": noon, "path_id": 1, "ref_id": 1, "count": 1},
                {"hour": noon, "path_id": 1, "ref_id": 2, "count": 1},
                {"hour": later, "path_id": 1, "ref_id": 1, "count": 1},
                {"hour": later, "path_id": 2, "ref_id": 1, "count": 9},
            ],
        }
        with zipfile.ZipFile(path, "w") as archive:
            for name, entries in files.items():
                archive.writestr(name, "".join(f"{json.dumps(entry)}\n" for entry in entries))
        return str(path)
    rows = [
        f'/posts/{pk},"A ""post"",\nit is",0,,Firefox 120,Linux,a1,0,,,"1920,1080,1",DE,1,{noon}',
        f"/posts/{pk},A post,0,,Firefox 120,Linux,a1,0,,,,DE,0,{noon}",
        f"/posts/{pk},A post,false,,Chrome 119,Windows 10,b2,0,,,,US-TX,true,{later}",
        f"/posts/{pk},A post,0,,Bot,,c3,3,,,,US,1,{later}",
        f"click,,1,,Firefox 120,Linux,a1,0,,,,DE,0,{later}",
    ]
    text = "\n".join([GOATCOUNTER, *rows, ""])
    if form == "csv":
        return written(folder, text)
    path = folder / "goatcounter-export.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return str(path)


@each_row("form", ["csv", "gzip", "zip"])
def test_an_export_of_goatcounter_fills_counts_and_charts_once(form: str, tmp_path: Path) -> None:
    post = factories.post()
    path = exported(tmp_path, post.pk, form=form)
    assert take_totals(path, dry_run=True).counted == 3
    report = take_totals(path)
    assert (report.read, report.counted) == (2, 3)
    assert take_totals(path).counted == 0
    assert counts()[post.pk] == 3
    start = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    hours = numbers_reports.series(post, since=start, until=start + timedelta(hours=2))
    assert [hour.views for hour in hours][:2] == [2, 1]


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.zip", b"PK\x03\x04 no archive", "is no export of GoatCounter"),
        ("a.csv", f"{GOATCOUNTER}\n/posts/1,,0,,,,,0,,,,,1,yesterday\n".encode(), "no time: 'yest"),
        ("a.csv.gz", gzip.compress(b"path,views\n/posts/1/,7\n", mtime=0)[:-9], "is no text"),
    ],
)
def test_an_export_that_is_damaged_is_refused(
    name: str, data: bytes, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(CommandError, match=problem):
        call_command("readtrack", "import", "--totals", str(path))


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("access.log", "nonsense")
    with pytest.raises(CommandError, match="is no export of GoatCounter"):
        call_command("readtrack", "import", "--totals", str(path))


@each_row(
    ("text", "number"),
    [
        ("1234", 1234),
        (" 1,234 ", 1234),
        ("1.234.567", 1234567),
        ("1 234", 1234),
        ("1'234", 1234),
        ("0", 0),
        ("1,234.567", None),
        ("12,34", None),
        ("1.5", None),
        ("-1", None),
        ("1e3", None),
        ("", None),
        ("12x", None),
        ("9999999999999", None),
    ],
)
def test_a_number_is_a_whole_one(text: str, number: int | None) -> None:
    assert number_of(text) == number
