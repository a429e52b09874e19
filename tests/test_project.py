"""What the project says of itself stands in one place, or agrees wherever it stands."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml_rs

from docs import release
from readtrack import __version__
from tests.benchmarks.serving import PROGRAMS
from tests.support.pgbouncer import CONFIGURATION

ROOT = Path(__file__).parent.parent
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
# Folders in which nothing is ours; `.venv` alone has some ten thousand files.
MADE = {".git", ".venv", "build", "dist", "release"}
SUFFIXES = {".md", ".yml", ".yaml", ".toml", ".html", ".txt"}
CONTACT = re.compile(r"^<!-- contact: .* -->\n(\S+@\S+)$", re.MULTILINE)
EXAMPLE = "readtrack.example"  # what stands in the place of addresses that are still to be chosen


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def texts() -> Iterator[tuple[str, str]]:
    """Yields the names and the content of the files in which an address may stand."""
    for top in ROOT.iterdir():
        if top.name in MADE or top.name.endswith("egg-info"):
            continue
        for path in [top, *top.rglob("*")]:
            name = str(path.relative_to(ROOT))
            if path.suffix in SUFFIXES and not name.startswith("docs/_build/"):
                yield name, path.read_text(encoding="utf-8")


def classifiers(pattern: str) -> list[str]:
    """Returns what the pattern has in brackets in pyproject's classifiers."""
    return re.findall(rf'^  "{pattern}",$', PYPROJECT, re.MULTILINE)


PYTHONS = classifiers(r"Programming Language :: Python :: (\d\.\d+)")
DJANGOS = classifiers(r"Framework :: Django :: (\d\.\d+)")


def test_no_other_file_than_two_has_an_address_that_is_to_be_filled_in() -> None:
    of_project = set(release.urls().values())
    for name, text in texts():
        if name in ("pyproject.toml", "SECURITY.md"):
            continue
        for address in re.findall(rf"\S*{re.escape(EXAMPLE)}[^\s)\"'>]*", text):
            assert address in of_project, (name, address)


def test_issues_lead_to_the_documentation() -> None:
    links = parsed(".github/ISSUE_TEMPLATE/config.yml")["contact_links"]
    assert [link["url"] for link in links] == [release.urls()["Documentation"]]


def test_the_changelog_and_the_issues_are_on_the_code_host() -> None:
    urls = release.urls()
    assert urls.keys() == {"Documentation", "Source", "Issues", "Changelog"}
    assert urls["Changelog"].startswith(urls["Source"])


def test_one_address_takes_reports_of_holes() -> None:
    assert len(CONTACT.findall(read("SECURITY.md"))) == 1
    assert "SECURITY.md" in read("CODE_OF_CONDUCT.md")


def test_each_page_names_the_versions_that_the_package_declares() -> None:
    assert f'requires-python = ">={PYTHONS[0]}"' in PYPROJECT
    assert f'"Django>={DJANGOS[0]}"' in PYPROJECT
    pythons = f"{PYTHONS[0]} to {PYTHONS[-1]}"
    assert f"Python {pythons}, Django {', '.join(DJANGOS[:-1])} and {DJANGOS[-1]}" in read(
        "README.md"
    )
    assert f"| {pythons} | {', '.join(DJANGOS)} |" in read("docs/reference/promise.md")
    servers = read("docs/howto/servers.md")
    assert f"| Python | {', '.join(PYTHONS)}," in servers
    assert f"| Django | {', '.join(DJANGOS)} |" in servers


def test_each_python_is_run() -> None:
    [pairs] = re.findall(r"^pythons=\((.+)\)$", read(".ci/run"), re.MULTILINE)
    minors = {f"3.{pair.partition(':')[0]}" for pair in pairs.split()}
    assert minors | {"3.11"} == set(PYTHONS)  # 3.11 is that of Debian, which runs everything


def test_the_page_on_servers_names_steps_that_exist() -> None:
    steps = re.findall(r'^ *step "(.+)"$', read(".ci/run"), re.MULTILINE)
    named = set(re.findall(r'"([A-Z][^"]+?)"', read("docs/howto/servers.md")))
    assert len(named) >= 9
    for name in named:
        beginning = re.split(r" ?…", name)[0]
        assert [step for step in steps if step.startswith(beginning)], name


def test_the_page_on_servers_has_each_server_of_a_step_and_no_other() -> None:
    page = read("docs/howto/servers.md")
    steps = re.findall(r'^ *step "(.+)"$', read(".ci/run"), re.MULTILINE)
    pattern = r"on (Redis|Valkey|PostgreSQL) (\d[\d.]*)"
    run = {found for step in steps for found in re.findall(pattern, step)}
    assert len(run) >= 4
    # Rows of the page: | Redis, the oldest | 6.2 | "Views, dots and the flush on Redis 6.2, …": not all tests |
    rows = re.findall(r'^\| (\w+)[^|]* \| ([\d.]+) \| "[^"]+ on \1 \2', page, re.MULTILINE)
    assert run == set(rows)


def test_the_page_on_servers_has_each_program_that_tests_start() -> None:
    [table] = re.findall(
        r"^## Web servers\n\n((?:\|.+\n)+)", read("docs/howto/servers.md"), re.MULTILINE
    )
    for program, command in PROGRAMS.items():
        [row] = [
            line for line in table.splitlines() if line.startswith(f"| {command.split()[0]} |")
        ]
        for option in re.findall("gevent|asgi|thread|preload", program):
            assert option.lower() in row.lower(), program
    assert "pool_mode = transaction" in CONFIGURATION


def test_no_page_promises_a_database_that_was_never_run() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    naming = [path.name for path in pages if "MySQL" in path.read_text(encoding="utf-8")]
    assert naming == ["servers.md"]
    assert "**MySQL is not supported.**" in read("docs/howto/servers.md")


def parsed(name: str) -> Any:
    """Returns the content of a YAML file."""
    return yaml_rs.loads(read(name))


WORKFLOWS = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / ".github" / "workflows").glob("*.yml")
)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_an_action_of_somebody_else_is_pinned_to_a_commit(name: str) -> None:
    used = re.findall(r"uses: (.+)$", read(name), re.MULTILINE)
    assert used
    for action in used:
        is_own = action.startswith("./")
        assert is_own or re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", action), action


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_read_and_only_single_jobs_may_do_more(name: str) -> None:
    workflow = parsed(name)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        rights = {right for right, level in job.get("permissions", {}).items() if level == "write"}
        runs_code_of_ours = any("run" in step for step in job.get("steps", []))
        assert not (runs_code_of_ours and "id-token" in rights)


def test_the_release_waits_for_the_tests() -> None:
    jobs = parsed(".github/workflows/release.yml")["jobs"]
    order = ["test", "build", "attest", "publish", "announce"]
    assert list(jobs) == order
    assert [jobs[name]["needs"] for name in order[1:]] == order[:-1]
    assert jobs["publish"]["environment"] == "pypi"
    assert "workflow_call" in parsed(".github/workflows/ci.yml")["on"]


@pytest.mark.parametrize(
    "name",
    [
        ".readthedocs.yaml",
        ".github/dependabot.yml",
        ".github/ISSUE_TEMPLATE/bug.yml",
        ".github/ISSUE_TEMPLATE/idea.yml",
    ],
)
def test_a_file_for_a_code_host_is_yaml_and_names_files_that_exist(name: str) -> None:
    assert parsed(name)
    for path in re.findall(r"\b(?:docs/|demo_project/|SECURITY)[\w/]*\.\w+", read(name)):
        assert (ROOT / path).exists()


def test_issue_forms_have_what_the_code_host_asks_for() -> None:
    for name in ("bug", "idea"):
        form = parsed(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert form.keys() >= {"name", "description", "body"}
        ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
        assert len(set(ids)) == len(ids) > 0


CHANGES = """\
# Changes

## 0.2.0, 2027-01-31

Second.

## 0.1.0, not released yet

First.
"""


def test_the_notes_of_a_release_are_those_of_its_version() -> None:
    assert release.notes_of("v0.2.0", changes=CHANGES, version="0.2.0") == "Second.\n"


@pytest.mark.parametrize(
    ("tag", "version", "message"),
    [
        ("v0.3.0", "0.2.0", "The tag is v0.3.0"),
        ("v0.1.0", "0.1.0", "no date for 0.1.0, but: not released yet"),
        ("v0.3.0", "0.3.0", "no heading for 0.3.0"),
    ],
)
def test_a_tag_that_is_not_ready_is_refused(tag: str, version: str, message: str) -> None:
    with pytest.raises(release.ReleaseError, match=re.escape(message)):
        release.notes_of(tag, changes=CHANGES, version=version)


def test_the_changelog_has_the_version_of_the_package() -> None:
    assert release.version() == __version__
    assert __version__ in [
        found["version"] for found in release.HEADING.finditer(read("CHANGELOG.md"))
    ]


def test_links_of_the_readme_lead_to_the_code_host_on_the_package_index(tmp_path: Path) -> None:
    text = release.with_addresses(read("README.md"), tag="v1.2.3", source="https://host.example/a/")
    assert "](https://host.example/a/blob/v1.2.3/docs/tutorial.md)" in text
    assert "](https://host.example/a/raw/v1.2.3/demo_project/screenshots/front.png)" in text
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []


def test_a_release_is_prepared_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "read", lambda name: CHANGES if "CHANGE" in name else read(name))
    monkeypatch.setattr(release, "version", lambda: "0.2.0")
    readme = tmp_path / "README.md"
    readme.write_text("[tutorial](docs/tutorial.md)")
    notes = tmp_path / "notes.md"
    words = ["v0.2.0", "--source", str(tmp_path), "--notes", str(notes)]
    assert release.main(words) == 0
    assert notes.read_text() == "Second.\n"
    assert release.urls()["Source"] in readme.read_text()


def test_a_release_that_is_not_ready_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["v9.9.9", "--source", str(tmp_path), "--notes", str(tmp_path / "notes.md")]
    assert release.main(words) == 1
    assert "The tag is v9.9.9" in capsys.readouterr().err
