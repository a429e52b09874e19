"""`manage.py readtrack budget`: the memory of Redis now, of a site of another size, and the advice."""

import json
import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test.utils import override_settings

from demo_project.engines.process import free_port
from readtrack import tracker
from readtrack.doctor import budget
from readtrack.doctor.budget import Numbers
from tests.support import factories

pytestmark = pytest.mark.django_db


def found(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    call_command("readtrack", "budget", "--json", *words)
    return json.loads(capsys.readouterr().out)


def test_a_site_is_known_by_its_rows() -> None:
    assert budget.own_numbers() == Numbers(0, 0.0, 0, 0)
    for views, visitors in ((0, 0), (10, 4), (10, 8), (0, 0)):
        factories.post(view_count=views, visitor_count=visitors)
    user = factories.user()
    assert budget.own_numbers() == Numbers(4, 0.5, 6, user.pk)
    assert budget.own_numbers().viewed == 2


@pytest.mark.parametrize(
    ("visitors", "readers", "anonymous", "advised", "warnings"),
    [
        (5, 1000, "none", "set", ["mostly empty"]),
        (100_000, 10_000_000, "none", "hll", ["mostly empty"]),
        (100_000, 1_000_000, "none", "hll", []),
        (900, 1000, "none", "bitmap", []),
        (900, 1000, "cookie", "hll", ["signed-in users only"]),
        (900, 1000, "hash", "hll", ["signed-in users only"]),
        (5, 1000, "cookie", "set", ["signed-in users only", "mostly empty"]),
        (0, 0, "none", "", []),
        (0, 1000, "none", "", []),
    ],
)
def test_the_advice_follows_the_numbers_and_who_is_counted(
    capsys: pytest.CaptureFixture[str], visitors: int, readers: int, anonymous: str, advised: str, warnings: list[str]
) -> None:
    numbers = ("--posts", "1000", "--active", "0.05", "--visitors", str(visitors), "--readers", str(readers))
    with override_settings(READTRACK={"ANONYMOUS": anonymous}):
        budget = found(capsys, *numbers)
    assert budget["advised"] == advised
    assert len(budget["warnings"]) == len(warnings)
    for told, words in zip(budget["warnings"], warnings, strict=True):
        assert words in told
    assert budget["numbers"] == {"posts": 1000, "active": 0.05, "visitors": visitors, "readers": readers}


def test_a_new_site_reads_that_there_is_nothing_to_measure(capsys: pytest.CaptureFixture[str]) -> None:
    factories.post()
    call_command("readtrack", "budget")
    text = capsys.readouterr().out
    assert "For 1 post, 0.0 % of them viewed, by 0 visitors each, " in text
    assert "there is nothing to measure yet. Give numbers of a site, such as --posts" in text
    assert "Advice" not in text
    assert "In Redis now:\n  no keys\n" in text


def test_posts_of_a_new_site_are_reckoned_with_as_viewed(capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys, "--posts", "1000", "--visitors", "300")["numbers"]["active"] == 1
    assert found(capsys, "--posts", "1000")["numbers"]["active"] == 0
    factories.post(view_count=1)
    factories.post()
    assert found(capsys, "--posts", "1000", "--visitors", "300")["numbers"]["active"] == 0.5


@pytest.mark.parametrize(
    ("posts", "visitors", "words"),
    [(1, 1, "For 1 post, 50.0 % of them viewed, by 1 visitor each, "), (2, 2, "For 2 posts, ")],
)
def test_one_is_in_the_singular(capsys: pytest.CaptureFixture[str], posts: int, visitors: int, words: str) -> None:
    call_command("readtrack", "budget", f"--posts={posts}", "--active=0.5", f"--visitors={visitors}")
    assert words in capsys.readouterr().out


def test_sizes_stand_beside_the_textbook(capsys: pytest.CaptureFixture[str]) -> None:
    budget = found(capsys, "--posts", "1000", "--active", "0.05", "--visitors", "100000", "--readers", "80000000")
    ways = {way["name"]: way for way in budget["strategies"]}
    assert ways["set"]["textbook"] == ways["daily"]["textbook"] == 5_000_000
    assert ways["hll"]["textbook"] == 12_288
    assert ways["bitmap"]["textbook"] == 10_000_000
    assert all(0.6 < way["each"] / way["textbook"] < 2.4 for way in ways.values())
    assert ways["hll"]["total"] == 50 * ways["hll"]["each"]
    assert budget["projected"] == {"views:total:{subject}": 50 * 89, "views:hour:{hour}:{subject}": 50 * 24 * 96}


def test_it_reads_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    tracker.record(factories.hit("site.post:1"))
    call_command("readtrack", "budget", "--posts=20", "--active=0.5", "--visitors=3", "--readers=1000")
    text = capsys.readouterr().out
    assert "For 20 posts, 50.0 % of them viewed, by 3 visitors each, and readers with numbers up to 1,000:" in text
    assert re.search(r"^  views:total:\{subject\} +1 +\d+ B +\d+ B$", text, re.MULTILINE)
    assert re.search(r"^  hll +\S+ \S+ +12.0 KB +\S+ \S+  within 0.81 %, any posts together$", text, re.MULTILINE)
    assert "Advice: READTRACK['UNIQUE'] = 'set', because a post has few visitors" in text
    assert "0.30 % of 1,000 bits would be set" in text


@pytest.mark.parametrize("words", [["--posts", "-1"], ["--posts", "9" * 14], ["--active", "2"], ["--active", "half"]])
def test_odd_numbers_are_refused(words: list[str]) -> None:
    with pytest.raises(CommandError, match="is no"):
        call_command("readtrack", "budget", *words)


def test_the_command_says_that_redis_is_gone() -> None:
    cache = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": f"redis://127.0.0.1:{free_port()}"}}
    with override_settings(CACHES=cache), pytest.raises(CommandError, match="Redis failed"):
        call_command("readtrack", "budget")
