"""One process of a rolling deploy: `worker.py WORK FOLDER NAME`, with one version of readtrack.

A writer notes each thing that it does in its journal before it does it, and again when it is done.
One that was killed is followed by another of the same name, which first does again what was not
done: a second view of the same visitor does not count, and to publish or read twice changes nothing.
"""

import json
import os
import random
import re
import signal
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import django

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
TOKEN = re.compile(r'data-page="([^"]+)"')
PLACES = ("category", "thread")
READING = 6  # seconds; readtrack believes no read in less than five
EACH = 3  # places of each kind that a writer has for itself
READERS = 4
PAUSE = 0.2  # seconds between two flushes
FULL = 5  # each fifth flush is a full one

is_leaving = False


class Act(NamedTuple):
    """What a writer does."""

    kind: str  # view, report, finish, step, read or publish
    what: str  # "post 3", "thread 2"
    who: str = ""  # the visitor, or the id of a reader
    token: str = ""  # of the page whose script reports
    cookie: str = ""  # of the visitor


class Writer:
    """Visitors, readers and authors of a site, in one process."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.rows = json.loads((folder / "rows").read_text())
        self.journal_path = folder / f"{name}.journal"
        self.journal = os.open(self.journal_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        number = int(name.removeprefix("write"))
        self.places = []
        for kind in PLACES:
            for pk in self.rows[kind][number * EACH : (number + 1) * EACH]:
                self.places.append(f"{kind} {pk}")

    def run(self) -> None:
        for act in self.undone():
            self.do(act)
        while not is_leaving:
            self.do(self.next_act())

    def undone(self) -> list[Act]:
        """Returns what the writer before this one noted last, if it was killed before it was done."""
        lines = self.journal_path.read_text().splitlines()
        if not lines:
            return []
        entry = json.loads(lines[-1])
        return [] if entry["is_done"] else [Act(*entry["act"])]

    def next_act(self) -> Act:
        visit = self.visit_to_go_on()
        if visit:
            return visit
        chance = random.random()
        post = f"post {random.choice(self.rows['post'])}"
        if chance < 0.5:
            return Act("view", post, uuid.uuid4().hex)
        if chance < 0.7:
            token = self.token_of_another(post)
            return Act("report", post, uuid.uuid4().hex, token)
        kind = "read" if chance < 0.9 else "publish"
        reader = str(random.choice(self.rows["reader"]))
        return Act(kind, random.choice(self.places), reader if kind == "read" else "")

    def token_of_another(self, post: str) -> str:
        """Returns the token of a page that another process has made, and leaves one of its own."""
        own = TOKEN.search(self.browser(uuid.uuid4().hex).get(f"/shared/{post[5:]}/").text)
        if own is None:
            raise AssertionError("The page has no token.")
        self.leave("token", post, own[1])
        return self.found("token", post) or own[1]

    def leave(self, kind: str, post: str, text: str) -> None:
        """Leaves something for the other processes."""
        path = self.folder / f"{self.name}.{kind} {post}"
        temporary = path.with_suffix(".new")
        temporary.write_text(text)
        temporary.replace(path)

    def found(self, kind: str, post: str) -> str:
        """Returns what another process has left; "" if none has."""
        others = [
            path
            for path in self.folder.glob(f"*.{kind} {post}")
            if not path.name.startswith(self.name)
        ]
        return random.choice(others).read_text() if others else ""

    def leave_visit(self, act: Act, page: Any, browser: Any) -> None:
        """Leaves a visit that any process is to go on with: to read the text, or to take a step."""
        token = TOKEN.search(page.text)
        if token is None:
            raise AssertionError("The page has no token.")
        kind = random.choice(["finish", "step"])
        visit = act._replace(kind=kind, token=token[1], cookie=browser.cookies["anon_id"].value)
        self.leave("visit", act.who, json.dumps(visit))

    def visit_to_go_on(self) -> Act | None:
        """Returns what the visitor of a page does next that has been open for long enough. No other
        process gets it.
        """
        paths = [*self.folder.glob("*.visit *")]
        random.shuffle(paths)
        for path in paths:
            taken = self.folder / f"{self.name} goes on"
            try:
                if time.time() - path.stat().st_mtime < READING:
                    continue
                path.replace(taken)
            except FileNotFoundError:  # another process took it
                continue
            return Act(*json.loads(taken.read_text()))
        return None

    def do(self, act: Act) -> None:
        self.note(act, is_done=False)
        does_count = getattr(self, act.kind)(act)
        self.note(act, is_done=True, does_count=does_count)

    def note(self, act: Act, **values: bool) -> None:
        line = json.dumps({"version": os.environ["ROLLING_VERSION"], "act": act, **values})
        os.write(self.journal, f"{line}\n".encode())  # in one write, so a kill leaves whole lines

    def view(self, act: Act) -> bool:
        post = act.what
        browser = self.browser(act.who)
        page = browser.get(f"/posts/{post[5:]}/")
        self.check(page)
        self.meet_a_cookie(post)
        if "anon_id" in browser.cookies:
            self.leave("cookie", post, browser.cookies["anon_id"].value)
            # A killed writer's view has counted for the cookie of a page that nobody got.
            if page.headers["X-Readtrack"].startswith("counted"):
                self.leave_visit(act, page, browser)
        return self.does_count(page)

    def meet_a_cookie(self, post: str) -> None:
        """Sees the post as a visitor whom another process has given a cookie: that is a repeat."""
        cookie = self.found("cookie", post)
        if cookie:
            browser = self.browser(uuid.uuid4().hex)
            browser.cookies["anon_id"] = cookie
            reason = browser.get(f"/posts/{post[5:]}/").headers.get("X-Readtrack")
            if reason != "skipped; reason=repeat":
                raise AssertionError(f"A visitor with a cookie of another process: {reason}")

    def report(self, act: Act) -> bool:
        answer = self.browser(act.who).post(
            "/readtrack/page.js",
            f"{act.token}\n\n\n100",
            content_type="text/plain",
            headers={"Sec-Fetch-Site": "same-origin"},
        )
        self.check(answer)
        if not answer.json()["elements"]:
            raise AssertionError("The answer to a script has no counts.")
        return self.does_count(answer)

    def finish(self, act: Act) -> bool:
        """Has read the text, which the page's script tells."""
        answer = self.browser_of(act).post(
            "/readtrack/page.js",
            f"{act.token}\n\n{READING} 1",
            content_type="text/plain",
            headers={"Sec-Fetch-Site": "same-origin"},
        )
        self.check(answer)
        return False

    def step(self, act: Act) -> bool:
        """Buys what the post offers."""
        self.check(self.browser_of(act).post(f"/buy/{act.what[5:]}/"))
        return False

    def does_count(self, answer: Any) -> bool:
        """Returns True for a view that counts, now or before the writer was killed."""
        outcome = answer.headers.get("X-Readtrack", "")
        if not (outcome.startswith("counted") or "reason=repeat" in outcome):
            raise AssertionError(f"A view does not count: {outcome}")
        return True

    def read(self, act: Act) -> bool:
        from django.contrib.auth.models import User

        kind, pk = act.what.split()
        browser = self.browser(uuid.uuid4().hex)
        browser.force_login(User.objects.get(pk=act.who))
        self.check(browser.get(f"/{kind}/{pk}/"))
        return False

    def publish(self, act: Act) -> bool:
        from shop.models import Post, Reply  # type: ignore[import-not-found]

        kind, pk = act.what.split()
        if kind == "thread":
            Reply.objects.create(thread_id=pk)
        else:
            Post.objects.create(category_id=pk)
        return False

    def check(self, page: Any) -> None:
        """Raises AssertionError for a page that failed, or has placeholders in it."""
        if page.status_code != 200 or b"!rt!" in page.content:
            raise AssertionError(
                f"{page.request['PATH_INFO']} {page.status_code} {page.text[:500]}"
            )

    def browser_of(self, act: Act) -> Any:
        """Returns the browser of a visitor who came before."""
        browser = self.browser(act.who)
        browser.cookies["anon_id"] = act.cookie
        return browser

    def browser(self, who: str) -> Any:
        """Returns a browser of a visitor, whose address is as much its own as its name."""
        from django.test import Client

        a, b, c = uuid.UUID(who).bytes[:3]
        agent = f"{BROWSER} {uuid.UUID(who).int}"  # no letters, which may name a robot
        return Client(headers={"User-Agent": agent}, REMOTE_ADDR=f"23.{a}.{b}.{c}")


def write(folder: Path, name: str) -> None:
    Writer(folder, name).run()


def flush(folder: Path, name: str) -> None:
    """Flushes until SIGTERM."""
    from django.core.management import call_command

    flushes = 0
    while not is_leaving:
        words = [] if flushes % FULL == FULL - 1 else ["--changed"]
        call_command("readtrack", "flush", *words, verbosity=0)
        flushes += 1
        time.sleep(random.random() * PAUSE)


def flush_once(folder: Path, name: str) -> None:
    from django.core.management import call_command

    call_command("readtrack", "flush", verbosity=0)


def migrate(folder: Path, name: str) -> None:
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0)


def fill(folder: Path, name: str) -> None:
    """Makes the rows for that number of writers, and writes down their keys."""
    from django.contrib.auth.models import User
    from shop.models import Category, Post, Thread

    places = range(int(name) * EACH)
    categories = [Category.objects.create() for _ in places]
    rows = {
        "post": [Post.objects.create(category=categories[0]).pk for _ in range(8)],
        "category": [category.pk for category in categories],
        "thread": [Thread.objects.create().pk for _ in places],
        "reader": [User.objects.create(username=f"reader {n}").pk for n in range(READERS)],
    }
    (folder / "rows").write_text(json.dumps(rows))


def look(folder: Path, name: str) -> None:
    """Writes down what this version sees in the end."""
    from django.contrib.auth.models import User
    from shop.models import Category, Post, Thread

    from readtrack import reports
    from readtrack.numbers import reports as numbers

    posts = list(Post.objects.filter(pk__in=json.loads((folder / "rows").read_text())["post"]))
    live = reports.views(posts)
    unread = []
    for user in User.objects.all():
        for model in (Category, Thread):
            rows = reports.unread(user, model.objects.all())
            unread += [f"{model._meta.model_name} {row.pk} {user.pk}" for row in rows]
    seen = {
        "SQL": {f"post {post.pk}": post.view_count for post in posts},
        "Redis": {f"post {post.pk}": live[post] for post in posts},
        "by device": {
            f"post {post.pk}": sum(numbers.breakdown(post, "device").values()) for post in posts
        },
        "history": sum(point.views for point in numbers.series(Post)),
        "reads": {f"post {post.pk}": numbers.reading(post).reads for post in posts},
        "history of reads": {
            f"post {post.pk}": sum(point.views for point in numbers.series(post, count="reads"))
            for post in posts
        },
        "funnel": {
            f"post {post.pk}": [stage.count for stage in numbers.funnel(post)] for post in posts
        },
        "unread": sorted(unread),
    }
    (folder / f"{name}.seen").write_text(json.dumps(seen))


def _leave(*_: object) -> None:
    global is_leaving
    is_leaving = True


WORK: dict[str, Callable[[Path, str], None]] = {
    "fill": fill,
    "flush": flush,
    "flush_once": flush_once,
    "look": look,
    "migrate": migrate,
    "write": write,
}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _leave)
    import readtrack

    # Not the readtrack of the checkout, which the environment may have, too.
    if not Path(readtrack.__file__).is_relative_to(os.environ["ROLLING_WHEEL"]):
        raise SystemExit(f"This is another readtrack: {readtrack.__file__}")
    django.setup()
    WORK[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
