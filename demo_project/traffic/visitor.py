"""What one visitor does."""

from collections.abc import Iterator
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from random import Random
from typing import NamedTuple

from demo_project.blog.headlines import SECTIONS
from demo_project.blog.prose import bulletin
from demo_project.forum.words import remark
from demo_project.traffic import agents
from demo_project.traffic.browser import Browser, Page
from demo_project.traffic.crowd import PATIENCE, Crowd

READERS = range(
    5, 21
)  # readers 1 to 4 belong to whoever looks at the demo: nobody else reads away their dots
REFERRERS = (
    "",
    "",
    "https://www.google.com/",
    "https://duckduckgo.com/",
    "https://news.ycombinator.com/",
)
ROBOTS = 0.06
DISGUISED = 0.5  # of the robots, which say that they are browsers
TRAPPED = 0.3  # of their pages lead them into the honeypot
KEEPS_NO_COOKIES = DefaultCookiePolicy(allowed_domains=())
CURIOUS = 0.05  # of the readers of a post begin an answer
COUNTRIES = ("DE", "DE", "US", "US", "GB", "FR", "ES", "PL", "BR", "JP")
SIGNED_IN = 0.3
HELD, TO_THE_END = (
    0.6,
    0.6,
)  # of the readers of a post its text holds so many, and of these some to its end


class Person(NamedTuple):
    """A visitor while it is here."""

    browser: Browser
    crowd: Crowd
    rng: Random

    def visit(self, *, is_robot: bool) -> Iterator[None]:
        """Browses some pages; suspends after each, for the time of reading it."""
        page = self.open("/")
        yield
        reader = not is_robot and self.rng.random() < SIGNED_IN and self.sign_in()
        for _ in range(self.rng.randint(3, 14)):
            page = self.open(self.choose(page))
            if not is_robot:
                self.browser.run_script(page)
                self.read(page)
            yield
            if page.trap and is_robot and self.rng.random() < TRAPPED:
                self.open(page.trap)
            elif reader and self.crowd.is_time_to_publish():
                page = self.publish(page)
                yield
            elif reader and self.crowd.is_time_to_reply():
                page = self.reply()
                yield
            elif page.answer and self.rng.random() < CURIOUS:
                self.open(page.answer)

    def open(self, path: str) -> Page:
        self.crowd.note("pages")
        return self.browser.get(path)

    def read(self, page: Page) -> None:
        """Leaves the page open while its text is read, or some of it, and goes on in another tab."""
        if page.seconds and self.rng.random() < HELD:
            is_whole = self.rng.random() < TO_THE_END
            seconds = (
                page.seconds + self.rng.randrange(20)
                if is_whole
                else self.rng.randrange(1, page.seconds)
            )
            self.crowd.note("readings")
            self.crowd.put_off(partial(self.browser.tell_reading, page, seconds), seconds=seconds)

    def choose(self, page: Page) -> str:
        """Mostly an article, now and then a section or the front page."""
        posts, sections = page.links("post") + page.links("evening"), page.links("category")
        if posts and self.rng.random() < 0.72:
            return self.rng.choices(posts, weights=[appeal(path) for path in posts])[0]
        if sections and self.rng.random() < 0.7:
            return self.rng.choice(sections)
        return self.rng.choice(("/", "/evening/", f"/?page={self.rng.randint(2, 9)}"))

    def sign_in(self) -> bool:
        self.crowd.note("sign-ins")
        name = f"reader{self.rng.choice(READERS)}"
        page = self.browser.submit(self.open("/login/"), {"username": name, "password": "reader"})
        return page.path != "/login/"

    def publish(self, page: Page) -> Page:
        """Publishes a post; one that answers the page's, if that is one."""
        self.crowd.note("posts")
        form = self.open(page.answer or "/publish/")
        section = self.rng.choice(SECTIONS)
        _, topic = self.rng.choice(section.headlines)
        title, body = bulletin(topic, self.rng)
        fields = {"category": form.options.get(section.name, ""), "title": title, "body": body}
        return self.browser.submit(form, {**fields, "answer": form.answered})

    def reply(self) -> Page:
        """Replies in one of the forum's threads; in the newest ones most often."""
        self.crowd.note("replies")
        board = self.open(self.rng.choice(self.open("/forum/").links("forum/board")))
        threads = board.links("forum/thread")
        place = min(int(self.rng.expovariate(0.4)), len(threads) - 1)
        form = self.open(f"{threads[place]}reply/")
        _, topic = self.rng.choice(self.rng.choice(SECTIONS).headlines)
        return self.browser.submit(form, {"text": remark(topic, self.rng)})


def appeal(path: str) -> float:
    """How much a post attracts, the same for everybody. Its distribution has a long tail, as on
    real sites.
    """
    return Random(path).paretovariate(0.9)


def come_and_go(crowd: Crowd, site: str, rng: Random) -> None:
    """One thread's life: a visitor, and after it another, until the end."""
    failures = 0
    while not crowd.pause(rng.random()):
        try:
            _stay(crowd, site, rng)
        except OSError as error:
            # A page that takes too long waits for a lock, perhaps. The server is there.
            if TimeoutError in (type(error), type(getattr(error, "reason", None))):
                continue
            if failures == len(PATIENCE):
                crowd.give_up()
                return
            crowd.pause(PATIENCE[failures])
            failures += 1
        else:
            failures = 0


def _stay(crowd: Crowd, site: str, rng: Random) -> None:
    is_robot = rng.random() < ROBOTS
    agent = agents.robot(rng) if is_robot and rng.random() >= DISGUISED else agents.person(rng)
    address = (
        f"198.18.{rng.randrange(256)}.{rng.randrange(256)}"  # a network for measurements (RFC 2544)
    )
    browser = Browser(
        site,
        agent,
        rng.choice(REFERRERS),
        address,
        country=rng.choice(COUNTRIES),
        jar=CookieJar(KEEPS_NO_COOKIES if is_robot else None),
    )
    person = Person(browser, crowd, rng)
    crowd.note("robots" if is_robot else "visitors")
    if crowd.take_turn():
        return
    for _ in person.visit(is_robot=is_robot):
        crowd.do_what_is_due()
        if crowd.pause(rng.expovariate(1 / crowd.think_time)) or crowd.take_turn():
            return
