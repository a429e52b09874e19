"""A total that is no number costs its own row its views, and nothing else: no page, no flush, no
other total.
"""

from collections.abc import Callable
from itertools import cycle, product

import pytest
from redis import Redis

from readtrack import reports
from readtrack.flush.run import flush
from readtrack.store import keys
from readtrack.store.circuit import circuit
from readtrack.subjects import subject_of
from tests.doctor.conftest import found
from tests.site.models import Post
from tests.support import factories
from tests.support.counts import live, stored, view
from tests.support.depth import some
from tests.support.interference import dump, restore

pytestmark = pytest.mark.django_db(transaction=True)

BREAKAGES: dict[str, Callable[[Redis, str], object]] = {
    "a word": lambda redis, key: redis.set(key, "many"),
    "a fraction": lambda redis, key: redis.set(key, "1.5"),
    "nothing": lambda redis, key: redis.set(key, ""),
    "beyond what SQL stores": lambda redis, key: redis.set(key, "9" * 19),
    "beyond what Redis counts": lambda redis, key: redis.set(key, "9" * 30),
    "a list": lambda redis, key: redis.delete(key) and redis.rpush(key, 1),
}

# Each with True or False, which a test takes as its own second parameter
PAIRS = some(
    zip(BREAKAGES, cycle([True, False]), strict=False), deep=product(BREAKAGES, [True, False])
)


@pytest.fixture(params=BREAKAGES)
def broken(request: pytest.FixtureRequest, redis: Redis) -> Post:
    """Returns a post that was viewed and flushed three times, and whose total is then broken."""
    post = factories.post()
    view(post, post, post)
    flush()
    BREAKAGES[request.param](redis, f"views:total:{subject_of(post)}")
    return post


def test_pages_show_what_sql_stores_and_views_of_others_count(broken: Post, redis: Redis) -> None:
    other = factories.post()
    for post, shown in ((broken, 3), (other, 1)):
        browser = factories.browser()
        assert f">{shown}<" in browser.get(f"/posts/{post.pk}/").text
        assert browser.get("/list/").status_code == 200
    assert circuit.lets_pass()
    broken.refresh_from_db()
    assert reports.views([broken, other]) == {broken: 3, other: 1}
    assert reports.skips()["error"] == 1


@pytest.mark.parametrize(("broken", "only_changed"), PAIRS, indirect=["broken"])
def test_a_flush_skips_it_and_says_so_once(
    broken: Post, caplog: pytest.LogCaptureFixture, only_changed: bool
) -> None:
    other = factories.post()
    view(other)
    assert flush(only_changed=only_changed).error == ""
    assert (stored(broken), stored(other)) == (3, 1)
    lines = [record.getMessage() for record in caplog.records if record.name == "readtrack"]
    assert [line for line in lines if subject_of(broken) in line] == lines
    assert len(lines) <= 1


@pytest.mark.parametrize(("breakage", "is_restored"), PAIRS)
def test_an_unsettled_one_stops_no_flush_and_counts_again_once_it_is_deleted(
    redis: Redis, breakage: str, *, is_restored: bool
) -> None:
    """Redis lost the total, and maybe a snapshot from before the settling was restored."""
    post, other = factories.post(view_count=3), factories.post(view_count=9)
    view(post, other)
    snapshot = dump(redis)
    if is_restored:
        flush()
        restore(redis, snapshot)
    name = f"views:total:{subject_of(post)}"
    BREAKAGES[breakage](redis, name)
    view(other)
    assert flush().error == ""
    assert (stored(post), stored(other)) == (3 + is_restored, 10 + (not is_restored))
    redis.delete(name)
    view(post, post)
    flush()
    assert stored(post) == live(redis, post) == 5 + is_restored


@pytest.mark.parametrize("broken", some(["a word", "a list"], deep=BREAKAGES), indirect=True)
def test_the_doctor_finds_it_and_says_what_to_do(broken: Post, redis: Redis) -> None:
    factories.post()
    [finding] = found("totals")
    key = keys.total(subject_of(broken))
    assert finding.level == "error"
    assert finding.message == f"Not a number in Redis: 1 total, such as {key}."
    redis.delete(key)
    view(broken)
    flush()
    assert (live(redis, broken), stored(broken)) == (4, 4)
    [finding] = found("totals")
    assert finding[:2] == ("ok", "1 total looked at, and all of them are numbers.")


@pytest.mark.needs_parts("numbers")
def test_the_hour_of_a_model_may_be_broken_too(redis: Redis) -> None:
    post = factories.post()
    view(post)
    [hour] = redis.keys("views:hour:*:site.post")
    redis.set(hour, "many")
    view(post)
    assert flush().error == ""
    assert stored(post) == 2


def test_a_list_of_what_changed_of_another_type_begins_anew(redis: Redis) -> None:
    posts = first, second = factories.post(), factories.post()
    for key in {keys.changed(keys.tag(subject_of(post))) for post in posts}:
        redis.set(key, "of somebody else")
    view(first)
    assert flush(only_changed=True).error == ""
    view(second)
    assert flush(only_changed=True).error == ""
    assert stored(second) == 1
    flush()  # looks at everything
    assert (stored(first), stored(second)) == (1, 1)
