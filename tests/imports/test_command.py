"""`manage.py readtrack import`, for operators."""

import bz2
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import DataError, connection
from django.db.models import F
from django.test.utils import override_settings

from demo_project.engines.process import free_port
from readtrack.flush.run import flush
from readtrack.imports import ledger
from readtrack.imports.models import Import
from tests.imports import weblogs
from tests.imports.test_hitcount import Tables
from tests.imports.weblogs import line
from tests.site.models import Category, Post
from tests.support import factories
from tests.support.factories import BROWSER

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def path(tmp_path: Path) -> str:
    factories.post(pk=1)
    return weblogs.write(
        tmp_path / "access.log",
        [line(), line(after=1), line("/x/"), line(after=9, address="192.0.2.7")],
    )


@pytest.fixture
def tables() -> Iterator[Tables]:
    found = Tables()
    found.create()
    yield found
    found.drop()


def output(capsys: pytest.CaptureFixture[str], *words: str, **options: object) -> str:
    call_command("readtrack", "import", *words, **options)
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def figures(text: str) -> dict[str, str]:
    return {name: count for count, name in re.findall(r"^ +([\d,]+)  (.+)$", text, re.MULTILINE)}


def test_an_import_says_what_counted_and_why_the_rest_did_not(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = output(capsys, path)
    assert figures(text) == {
        "read": "4",
        "counted": "2",
        "skipped": "1",
        "  repeat (25%)": "1",
        "not resolved": "1",
        "  /x/ (25%)": "1",
    }
    assert Post.objects.get().view_count == 2


def test_a_dry_run_says_that_it_is_one(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, path, "--dry-run")
    assert text.startswith("Nothing was written.")
    assert figures(text)["counted"] == "2"
    assert Post.objects.get().view_count == 0


def test_a_dry_run_shows_how_lines_were_understood(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = output(capsys, path, "--dry-run")
    shown = text.partition("as they were understood:\n")[2].partition("\n\n")[0].splitlines()
    assert shown[0::2] == [
        "2026-03-01 12:00:00 UTC  (no host)  192.0.2.1  GET /posts/1/  200  site.post:1  counted",
        "2026-03-01 12:00:01 UTC  (no host)  192.0.2.1  GET /posts/1/  200  site.post:1  repeat",
        "2026-03-01 12:00:00 UTC  (no host)  192.0.2.1  GET /x/  200  (no object)  not resolved",
        "2026-03-01 12:00:09 UTC  (no host)  192.0.2.7  GET /posts/1/  200  site.post:1  counted",
    ]
    assert set(shown[1::2]) == {f"    {BROWSER}"}
    assert "as they were understood" not in output(capsys, path)


def test_a_dry_run_shows_few_lines_of_each_kind_and_ten_at_most(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factories.post(pk=1)
    others = [line("/x/"), line(method="POST"), line(status=404), line(agent=weblogs.ROBOT)]
    lines = ["nonsense\x1b[31m", "#", *(other for other in others for _ in range(20)), line()]
    text = output(capsys, weblogs.write(tmp_path / "a.log", lines), "--dry-run")
    shown = text.partition("as they were understood:\n")[2].partition("\n\n")[0].splitlines()
    assert shown[0] == "nonsense?[31m  malformed"
    kinds = [text.rpartition("  ")[2] for text in shown[1::2]]
    assert kinds == ["not resolved"] * 3 + ["method"] * 3 + ["status"] * 3


def test_entries_of_json_are_left_out_by_a_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factories.post(pk=1)
    entries = [weblogs.nginx(kind=kind, remote_addr=f"192.0.2.{n}") for n, kind in enumerate("abb")]
    path = weblogs.write(tmp_path / "a.log", entries)
    found = figures(output(capsys, path, "--where", "kind=b"))
    assert (found["counted"], found["  no visit (33%)"]) == ("2", "1")


def test_paths_that_a_log_has_decoded_are_said_to_be_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    post = factories.post(title="a b?")
    log = weblogs.write(tmp_path / "a.log", [line("/titles/a b?/")])
    with override_settings(ROOT_URLCONF="tests.imports.urls"):
        assert figures(output(capsys, log))["  malformed (100%)"] == "1"
        assert figures(output(capsys, log, "--decoded"))["counted"] == "1"
    post.refresh_from_db()
    assert post.view_count == 1


def test_a_quiet_import_says_nothing(
    path: str, tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    assert output(capsys, path, verbosity=0) == ""
    assert output(capsys, "--from", "hitcount", verbosity=0) == ""


def test_json_is_read_by_fields_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factories.post(pk=1)
    path = weblogs.write(tmp_path / "a.log", [weblogs.nginx(remote_addr=None, ip="192.0.2.1")])
    found = output(capsys, path, "--format", "json", "--field", "address=ip")
    assert figures(found)["counted"] == "1"


def test_a_log_without_user_agents_counts_when_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factories.post(pk=1)
    path = weblogs.write(tmp_path / "a.log", [line().rpartition(' "-" ')[0]])
    found = output(capsys, path, "--format", "common", "--dry-run")
    assert (figures(found)["counted"], figures(found)["  no agent (100%)"]) == ("0", "1")
    assert figures(output(capsys, path, "--format", "common", "--count-robots"))["counted"] == "1"


def test_a_log_without_news_is_no_warning_and_the_way_to_repeat_it_is_said(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output(capsys, path)
    call_command("readtrack", "import", path, force_color=True)
    first_line, *_ = capsys.readouterr().out.splitlines()
    assert first_line == (
        "1 log imported before, with nothing new. --again counts lines that did not count then."
        " --undo takes back what a log has added."
    )
    assert figures(output(capsys, path, "--again"))["  imported before (50%)"] == "2"


def test_the_help_says_how_an_import_is_taken_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        call_command("readtrack", "import", "--help")
    text = " ".join(capsys.readouterr().out.split())
    assert "--undo takes what a file or a list of totals has added out of counts and charts" in text
    assert "Then import it again, with the right options." in text


def test_the_format_is_recognised_unless_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factories.post(pk=1)
    path = weblogs.write(tmp_path / "a.log", [weblogs.nginx(), line(address="192.0.2.7")])
    assert figures(output(capsys, path, "--format", "json", "--dry-run"))["counted"] == "1"
    assert figures(output(capsys, path, "--format", "combined", "--dry-run"))["counted"] == "1"
    assert figures(output(capsys, path))["counted"] == "2"
    with pytest.raises(CommandError, match="invalid choice: 'nginx'"):
        call_command("readtrack", "import", path, "--format", "nginx")


def test_a_value_that_the_database_refuses_is_not_taken_for_a_database_that_is_gone(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise DataError('value "x" has no equivalent in encoding "LATIN1"')

    monkeypatch.setattr(ledger, "add", refuse)
    with pytest.raises(CommandError) as raised:
        call_command("readtrack", "import", path)
    assert "The database refused a value or a statement: DataError: " in str(raised.value)
    assert "Is it running" not in str(raised.value)


def test_a_log_that_has_to_be_unpacked_is_one_line_of_error(tmp_path: Path) -> None:
    path = tmp_path / "access.log.bz2"
    path.write_bytes(bz2.compress(line().encode()))
    with pytest.raises(
        CommandError, match=rf"^{path} is bzip2. Convert it first: bunzip2 --keep {path}$"
    ):
        call_command("readtrack", "import", str(path))


@pytest.mark.parametrize(
    ("since", "until", "counted"),
    [
        ("2026-03-01", "2026-03-02", "2"),
        ("2026-03-01T12:00:05+00:00", "2026-03-01T12:00:10", "1"),
        ("2026-03-02", "2026-03-03", "0"),
    ],
)
def test_times_are_dates_or_moments(
    path: str, capsys: pytest.CaptureFixture[str], since: str, until: str, counted: str
) -> None:
    assert figures(output(capsys, path, "--since", since, "--until", until))["counted"] == counted


@pytest.mark.parametrize(
    "words",
    [
        ["--since", "tomorrow"],
        ["--since", "2026-02-30"],
        ["--field", "colour=x"],
        ["--field", "address"],
        ["--where", "kind"],
        ["--where", "=x"],
        [],
        ["--from", "hitcount", "access.log"],
        ["nowhere.log"],
        ["-"],
        ["--from", "hitcount"],
    ],
)
def test_an_impossible_import_is_one_line_of_error(words: list[str]) -> None:
    with pytest.raises(CommandError, match=r"^[^\n]+$"):
        call_command("readtrack", "import", *words)


def test_the_command_says_that_redis_or_the_database_is_gone(path: str) -> None:
    cache = {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": f"redis://127.0.0.1:{free_port()}",
        }
    }
    with override_settings(CACHES=cache), pytest.raises(CommandError, match="Redis failed"):
        call_command("readtrack", "import", path)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE readtrack_imports_import RENAME TO elsewhere")
    try:
        with pytest.raises(CommandError, match="The database failed"):
            call_command("readtrack", "import", path)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO readtrack_imports_import")


def test_an_import_that_is_overtaken_is_said(tmp_path: Path) -> None:
    def overtake(path: str, pk: int) -> Post:
        Import.objects.update(position=10)  # as another import does that came further meanwhile
        return factories.post(pk=pk)

    path = weblogs.write(tmp_path / "a.log", [line("/posts/1/function/")])
    rules = {"IMPORTS": {"views": {"tests.site.views.post_page": overtake}}}
    with override_settings(READTRACK=rules), pytest.raises(CommandError, match="Another import"):
        call_command("readtrack", "import", path)
    flush()
    assert Post.objects.get().view_count == 0


def test_hitcount_is_imported_and_the_report_names_what_was_lost(
    tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    post = factories.post()
    tables.count(Post, post.pk, 7)
    tables.count(Category, 1, 7)
    assert output(capsys, "--from", "hitcount", "--dry-run").startswith("Nothing was written.")
    found = figures(output(capsys, "--from", "hitcount"))
    assert (found["counted"], found["  not tracked: site.Category (50%)"], found["read"]) == (
        "7",
        "1",
        "2",
    )
    Import.objects.update(intended=99)
    assert "Redis lost its data" in output(capsys, "--from", "hitcount")


def test_notes_are_shown(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    output(capsys, path)
    Import.objects.update(intended=F("position") + 980)
    assert "980 bytes passed over" in output(capsys, path, "--dry-run")
