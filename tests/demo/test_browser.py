"""The demo in a real browser: pages of readers and the admin, in both colour schemes and under a
strict policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from importlib.resources import files
from itertools import count, pairwise, product
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, expect

from demo_project import chromium
from demo_project.traffic.browser import Browser as Visitor
from tests.demo.conftest import AGENT, Manage
from tests.support.depth import DEEP
from tests.support.waiting import ENOUGH, comes_true

expect.set_options(timeout=ENOUGH * 1000)  # a busy machine may be slow

DASHBOARD, POSTS = "/admin/readtrack/dashboard/", "/admin/blog/post/"
STRICT = "default-src 'self'"
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
EXAMINE = """rules => {
  document.getAnimations().forEach(each => each.finish());  // or colours are somewhere between two schemes
  return axe.run({resultTypes: ["violations"], ...rules && {runOnly: rules}}).then(({violations}) =>
    violations.flatMap(({id, nodes}) => nodes.map(node => `${id}: ${node.target}`)));
}"""
HEARKEN = """
window.violations = [];
addEventListener("securitypolicyviolation", event =>
  violations.push(`${event.effectiveDirective} ${event.target.getAttribute?.("style") ?? event.blockedURI}`));
"""
ALONE = """arrow => [...Array(40).keys()].filter(step => {
  const title = arrow.parentElement;
  title.style.cssText = `display: block; width: ${150 + 4 * step}px`;
  return arrow.getBoundingClientRect().top > [...title.firstElementChild.getClientRects()].at(-1).bottom - 4;
})"""
BEYOND = """table => {
  const caption = table.createCaption();
  caption.textContent = "word ".repeat(40);
  return caption.getBoundingClientRect().right - table.parentElement.getBoundingClientRect().right;
}"""
# The left and right ends of the labels below the chart that are seen, the first one first.
LABELS = """() => [...document.querySelectorAll(".readtrack-label")]
  .filter(label => getComputedStyle(label).opacity !== "0")
  .map(label => label.getBoundingClientRect()).map(box => [box.left, box.right])"""
BOXES = "texts => texts.map(text => text.getBoundingClientRect()).map(box => [box.left, box.right, box.height])"
COLOURS = """chart => [...chart.querySelectorAll("*")].map(element => {
  const style = getComputedStyle(element);
  return `${element.tagName} ${element.getAttribute("class")} ${style.fill} ${style.stroke}`;
})"""

LINES = ".readtrack-plot .readtrack-line"
# The colours of a rise and a fall, as `rgb(…)`: browsers answer with another notation of a mixture.
CHANGES = """() => ["up", "down"].map(trend => {
  const change = document.createElement("bdi");
  change.className = `readtrack-${trend}`;
  document.querySelector(".readtrack-figures dd").append(change);
  const context = document.createElement("canvas").getContext("2d");
  context.fillStyle = getComputedStyle(change).color;
  context.fillRect(0, 0, 1, 1);
  return `rgb(${[...context.getImageData(0, 0, 1, 1).data].slice(0, 3)})`;
})"""

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
LOOKS: list[tuple[Scheme, int]] = (
    [*product(SCHEMES, (390, 1280))] if DEEP else [("light", 390), ("dark", 1280)]
)
# Who opens which page; in a deep run others, too, that are made of the same parts.
PAGES = [
    ("admin", DASHBOARD),
    ("admin", f"{DASHBOARD}object/blog.post:1/"),
    ("admin", f"{DASHBOARD}?tab=sources"),
    ("admin", f"{DASHBOARD}?tab=stories&order=title&q=a"),
    ("admin", f"{DASHBOARD}?tab=age"),
    ("admin", f"{DASHBOARD}?tab=refused"),
    ("admin", f"{DASHBOARD}?period=28&device=phone"),
    ("admin", f"{DASHBOARD}?from=2026-07-01&to=2026-07-09"),
    ("admin", "/admin/readtrack/readers/blog.category:1/"),
    ("admin", "/admin/readtrack/viewcounts/"),
    ("admin", POSTS),
    ("admin", "/post/1/"),  # with the panel
    ("reader1", "/"),
    ("reader1", "/post/1/"),
    ("", "/login/"),
]
if DEEP:
    PAGES += [
        ("admin", f"{DASHBOARD}?tab={name}") for name in ("growth", "groups", "reading", "sections")
    ]
    PAGES += [("admin", f"{DASHBOARD}?period=yesterday&device=phone"), ("", "/evening/")]
    PAGES += [("admin", f"{DASHBOARD}object/blog.post:1/?device=phone")]
    PAGES += [("reader1", path) for path in ("/category/2/", "/publish/")]

OPEN = "document.querySelectorAll('.readtrack details').forEach(each => (each.open = true))"
LENGTHEN = """() => document.querySelectorAll(".readtrack :is(dt, th, caption, a, h2, td:first-child)").forEach(
  element => (element.textContent = element.textContent.replace(/\\w{5,}/g, word => `${word}zusammenhang`)))"""

versions = count(140)


@pytest.fixture(scope="module", autouse=True)
def counted(demo_url: str, manage: Manage) -> None:
    """The demo has counted something: the dashboard of a new site has no chart."""
    Visitor(demo_url, AGENT).get("/post/1/")
    manage("readtrack", "flush")


@pytest.fixture(scope="module")
def newcomer(display: Browser, demo_url: str) -> Iterator[Callable[[], BrowserContext]]:
    """Opens a browser without cookies."""
    opened = []

    def open_one() -> BrowserContext:
        result = display.new_context(
            base_url=demo_url, user_agent=chromium.agent(str(next(versions)))
        )
        result.set_default_timeout(15_000)
        result.add_init_script(HEARKEN)
        opened.append(result)
        return result

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture(scope="module")
def signed_in(newcomer: Callable[[], BrowserContext]) -> Callable[[str], BrowserContext]:
    """Signs the users in once for all tests. The demo keeps its sessions in SQL."""
    known: dict[str, BrowserContext] = {}

    def sign_in(name: str) -> BrowserContext:
        if name not in known:
            known[name] = newcomer()
            if name:
                chromium.sign_in(known[name].new_page(), name)
        return known[name]

    return sign_in


@pytest.fixture
def tab(signed_in: Callable[[str], BrowserContext]) -> Iterator[Callable[[str], Page]]:
    """Returns the tab of a user who is signed in; of a visitor without a name. A new one would take
    a new process.
    """
    tabs: list[Page] = []

    def open_tab(name: str) -> Page:
        pages = signed_in(name).pages
        tabs.append(pages[0] if pages else signed_in(name).new_page())
        return tabs[-1]

    yield open_tab
    for each in tabs:
        each.unroute_all(
            behavior="ignoreErrors"
        )  # a page asks every two seconds what became of its hits
        each.goto("about:blank")
        each.set_extra_http_headers({})
        each.emulate_media(media="null", color_scheme="null")
        each.set_viewport_size({"width": 1280, "height": 720})


def section(page: Page, name: str) -> Locator:
    """Returns the link of a section in the navigation."""
    return page.get_by_role("navigation", name="Sections").get_by_role("link").filter(has_text=name)


def dot(page: Page, name: str) -> Locator:
    return section(page, name).locator(".readtrack-dot")


def complaints(page: Page) -> list[str]:
    """Collects the errors and warnings of the browser on pages that are opened from now on."""
    heard: list[str] = []
    page.on(
        "console",
        lambda message: (
            heard.append(message.text) if message.type in {"error", "warning"} else None
        ),
    )
    page.on("pageerror", lambda error: heard.append(str(error)))

    def note_failed(request: Request) -> None:
        # What a page tells of its view, and what its scripts ask, may be on its way when the next
        # one is opened.
        is_left = (request.resource_type, request.failure) == ("fetch", "net::ERR_ABORTED")
        if request.method == "GET" and not is_left:
            heard.append(f"{request.url}: {request.failure}")

    page.on("requestfailed", note_failed)
    return heard


def under_policy(page: Page, policy: str) -> None:
    """Lets the site send a content security policy with every response."""
    page.set_extra_http_headers({"X-Policy": policy})


def contrast(one: str, two: str) -> float:
    """Returns the contrast of two `rgb(…)` colours by WCAG, from 1 to 21."""
    bright, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)


def linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def test_one_publishes_and_the_others_dot_appears_until_the_section_is_opened(
    tab: Callable[[str], Page],
) -> None:
    one, two = tab("reader1"), tab("reader2")
    one.goto("/")
    section(one, "Travel").click()
    expect(dot(one, "Travel")).to_have_count(0)
    chromium.write(two, "Travel")
    chromium.publish(two)
    one.goto("/")
    expect(dot(one, "Travel")).to_be_visible()
    section(one, "Travel").click()
    expect(one.get_by_role("heading", level=1)).to_have_text("Travel")
    expect(dot(one, "Travel")).to_have_count(0)
    one.goto("/")
    expect(dot(one, "Travel")).to_have_count(0)
    expect(dot(one, "Sport")).to_be_visible()


def test_a_count_rises_for_a_new_visitor_and_not_on_reload(
    tab: Callable[[str], Page], newcomer: Callable[[], BrowserContext]
) -> None:
    def live(page: Page) -> int:
        return int(page.locator("dt:text('Live, in Redis') + dd").inner_text().replace(",", ""))

    one, two = tab(""), newcomer().new_page()
    one.goto("/post/40/")
    before = live(one)
    one.reload()
    assert live(one) == before
    two.goto("/post/40/")
    assert live(two) == before + 1
    one.reload()
    assert live(one) == before + 1


def test_the_foot_of_a_page_says_whether_it_counted(newcomer: Callable[[], BrowserContext]) -> None:
    page = newcomer().new_page()
    page.goto("/post/44/")
    line, lists = page.locator(".hits summary"), page.locator(".hits ol").first
    expect(line).to_have_text("counted /post/44/")
    page.goto("/evening/45/")
    expect(line).to_have_text("counted /evening/45/")  # by its script
    expect(lists).to_be_hidden()
    line.click()
    expect(lists.locator("li")).to_have_text(
        [re.compile("45/ counted told by"), re.compile("left"), re.compile("44/")]
    )


def test_a_dot_is_read_aloud(tab: Callable[[str], Page]) -> None:
    page = tab("reader1")
    page.goto("/")  # the first page on an empty Redis marks nothing read
    page.goto("/category/2/")
    named = page.get_by_role("navigation", name="Sections").aria_snapshot()
    assert '- link "City Life unread"' in named
    assert '- link "Science & Nature"' in named
    assert dot(page, "City Life").get_attribute("title") == "New"


def test_a_dot_has_a_colour_for_each_scheme(tab: Callable[[str], Page]) -> None:
    page = tab("reader1")
    page.goto("/")
    colours = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colours.add(dot(page, "Sport").evaluate("dot => getComputedStyle(dot).backgroundColor"))
    assert len(colours) == 2


def test_the_chart_takes_its_colours_from_the_admin(tab: Callable[[str], Page]) -> None:
    page = tab("admin")
    page.goto(DASHBOARD)
    chart = page.locator(".readtrack-plot svg")
    expect(chart).to_be_visible()
    assert page.locator(".readtrack [style], .readtrack style, .readtrack script").count() == 0
    schemes = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        schemes.append(chart.evaluate(COLOURS))
    assert schemes[0] != schemes[1]


@pytest.mark.parametrize("chosen", ["yesterday", "year", *(["28", "90"] if DEEP else [])])
def test_the_charts_labels_can_be_read_at_every_width(
    tab: Callable[[str], Page], chosen: str
) -> None:
    page = tab("admin")
    page.goto(f"{DASHBOARD}?period={chosen}")
    for width in (320, 390, 800, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        labels = page.evaluate(LABELS)
        assert len(labels) >= 3
        assert all(end <= start for (_, end), (start, _) in pairwise(labels)), (width, labels)
        marks = page.locator(".readtrack-mark > summary")
        assert 3 <= marks.count() <= 8
        boxes = marks.evaluate_all(BOXES)
        assert all(right - left >= 24 for left, right, _ in boxes)  # WCAG 2.2, 2.5.8
        sizes = "marks => marks.map(mark => parseFloat(getComputedStyle(mark).fontSize))"
        assert min(marks.evaluate_all(sizes)) >= 11
        # The label of the first of several points stands there. Before: the last one on a phone did not.
        begun = page.locator(".readtrack-begins .readtrack-mark > summary")
        assert begun.count() == marks.count()
        displays = begun.evaluate_all("marks => marks.map(mark => getComputedStyle(mark).display)")
        assert {*displays} == {"block"}
        assert page.evaluate("document.documentElement.scrollWidth") == width


# From the title to the end of the chart, without the sentence; before: 499 and 461, later 370 on a phone.
@pytest.mark.parametrize(("width", "height", "most"), [(1280, 800, 485), (390, 844, 350)])
def test_the_first_screen_has_the_whole_chart(
    tab: Callable[[str], Page], width: int, height: int, most: int
) -> None:
    page = tab("admin")
    page.set_viewport_size({"width": width, "height": height})
    page.goto("/post/2/")
    page.goto(DASHBOARD)
    remark = page.locator("dd").filter(has_text="No text was read")  # on a new site only
    remark.evaluate_all("remarks => remarks.forEach(remark => remark.remove())")
    title, sentence, bar, marks = (
        page.locator(f".readtrack-{name}").bounding_box()
        for name in ("top", "lead", "bar", "marks")
    )
    assert title
    assert sentence
    assert bar
    assert marks
    bottom = marks["y"] + marks["height"]
    assert bottom <= height
    assert bottom - title["y"] - sentence["height"] <= most
    assert bar["height"] < 40  # one row of menus


def test_the_dashboard_fits_a_phone_long_words_the_other_direction_and_a_sheet_of_paper(
    tab: Callable[[str], Page],
) -> None:
    page = tab("admin")
    for path in ("/post/2/", "/post/2/", f"{DASHBOARD}object/blog.post:2/", DASHBOARD):
        page.goto(path)
        for width in (390, 320):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") == width
            page.evaluate(OPEN)  # before: a table of values was wider than the page
            assert page.evaluate("document.documentElement.scrollWidth") == width
    page.reload()
    page.evaluate(LENGTHEN)
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate("document.documentElement.dir = 'rtl'")
    [[axis, _, _]] = page.locator(".readtrack-plot svg").evaluate_all(BOXES)
    values = page.locator(".readtrack-axis span").evaluate_all(BOXES)
    assert all(right < axis for _, right, _ in values)
    page.goto(DASHBOARD)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for admins in ("#header", ".breadcrumbs", "#nav-sidebar"):
        expect(page.locator(admins)).to_be_hidden()
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= 3
    page.goto(f"{DASHBOARD}object/blog.post:2/")
    page.set_viewport_size({"width": 794, "height": 1123})  # A4
    [first, second, *_] = page.locator(".readtrack-grid > section").evaluate_all(BOXES)
    assert first[1] <= second[0]  # before: below each other


# From right to left, long words, wide letters; in a deep run the others, too.
@pytest.mark.parametrize("language", ["ar", "de", "ja", *(["es", "fr", "pt-BR"] if DEEP else [])])
def test_the_dashboard_fits_a_phone_in_each_language(
    tab: Callable[[str], Page], language: str
) -> None:
    page = tab("admin")
    page.set_extra_http_headers({"Accept-Language": language})
    for path in ("/post/2/", DASHBOARD):
        page.goto(path)
    root, titles = map(page.locator, ("html", ".readtrack-stories th[scope=row]"))
    expect(root).to_have_attribute("lang", language.lower())
    expect(root).to_have_attribute("dir", "rtl" if language == "ar" else "ltr")
    urls = [DASHBOARD, f"{DASHBOARD}?period=7&by=hour"]  # before: its last labels overlapped
    urls += [f"{DASHBOARD}?period=90", f"{DASHBOARD}object/blog.post:2/"]
    urls += [f"{DASHBOARD}?tab={name}" for name in ("stories", "sources", "groups", "refused")]
    for url in urls if DEEP or language == "ar" else urls[:2]:
        page.goto(url)
        for width in (390, 320):
            page.set_viewport_size({"width": width, "height": 800})
            assert (url, page.evaluate("document.documentElement.scrollWidth")) == (url, width)
            assert all(right - left >= 120 for left, right, _ in titles.evaluate_all(BOXES))
            labels = page.evaluate(LABELS)  # before: they overlapped
            overlap = any(end > start for (_, end), (start, _) in pairwise(labels))
            assert not overlap, (url, width)
    if language == "ar":  # every other page is examined from left to right
        page.goto(f"{DASHBOARD}object/blog.post:2/")
        page.evaluate(AXE)
        assert page.evaluate(EXAMINE) == []


def test_pointing_at_the_chart_shows_its_values(tab: Callable[[str], Page]) -> None:
    page = tab("admin")
    heard = complaints(page)
    under_policy(page, STRICT)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/post/2/")
    page.goto(f"{DASHBOARD}?period=7")
    last = page.locator(".readtrack-marks > li").last
    values = last.locator(".readtrack-tip")
    expect(values).to_be_hidden()
    box = page.locator(".readtrack-plot").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 40)
    expect(values).to_be_visible()
    views = page.locator(".readtrack-values tbody tr").last.locator("td").first.text_content()
    expect(values.locator("dd").first).to_have_text(str(views))
    page.keyboard.press("Escape")
    expect(values).to_be_hidden()
    last.locator("summary").press("Enter")
    expect(values).to_be_visible()
    assert (heard, page.evaluate("violations")) == ([], [])


def test_a_menu_closes_by_a_click_elsewhere_and_by_escape(tab: Callable[[str], Page]) -> None:
    page = tab("admin")
    for width in (1280, 600, 320):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(DASHBOARD)
        period = page.locator(".readtrack-menu").first
        files = page.locator(".readtrack-exports")
        period.locator("summary").click()
        expect(period.get_by_role("link", name="28 days")).to_be_visible()
        files.locator("summary").press("Enter")  # the other one may cover it
        expect(period.get_by_role("link", name="28 days")).to_be_hidden()
        expect(files.get_by_role("link").first).to_be_in_viewport()
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.keyboard.press("Escape")
        expect(files.get_by_role("link").first).to_be_hidden()
        expect(files.locator("summary")).to_be_focused()


def test_the_dashboard_is_whole_without_scripts(
    display: Browser, demo_url: str, signed_in: Callable[[str], BrowserContext]
) -> None:
    context = display.new_context(
        base_url=demo_url,
        java_script_enabled=False,
        storage_state=signed_in("admin").storage_state(),
        user_agent=chromium.agent(str(next(versions))),
    )
    page = context.new_page()
    page.goto(DASHBOARD)
    expect(page.locator(".readtrack-plot svg")).to_be_visible()
    page.get_by_role("link", name="Reads", exact=True).click()
    expect(page.get_by_role("heading", name="Reads")).to_be_visible()
    page.locator(".readtrack-menu summary").first.click()
    page.locator(".readtrack-menu").first.get_by_role("link", name="Yesterday").click()
    expect(page.locator(".readtrack-menu summary").first).to_contain_text("Yesterday")
    expect(page.get_by_role("heading", name="Reads")).to_be_visible()
    page.locator(".readtrack-quick").get_by_role("link", name="Last week").click()
    expect(page.get_by_role("heading", name="Reads")).to_be_visible()
    context.close()


@pytest.mark.parametrize(("language", "name"), [("en", "Germany"), ("ja", "ドイツ")])
def test_a_country_has_its_name_in_the_language_of_the_page(
    tab: Callable[[str], Page], manage: Manage, browser: Visitor, language: str, name: str
) -> None:
    for country in ("DE", "T1"):
        browser.country = country
        browser.get(f"/post/{61 if country == 'DE' else 62}/")
    manage("readtrack", "flush")
    page = tab("admin")
    page.set_extra_http_headers({"Accept-Language": language})
    page.goto(f"{DASHBOARD}?tab=sources")
    names = page.locator("[data-country] a").all_text_contents()
    assert name in names
    assert "DE" not in names


def test_a_caption_is_no_wider_than_its_table_on_a_phone(tab: Callable[[str], Page]) -> None:
    page = tab("admin")
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{DASHBOARD}object/blog.post:1/")
    page.get_by_text("Values as a table", exact=True).click()
    beyond = page.locator(".readtrack-values table").evaluate(BEYOND)
    assert beyond <= 0  # before: 20
    page.set_viewport_size({"width": 320, "height": 800})
    page.goto(f"{DASHBOARD}?tab=stories")
    scrolled = page.locator(".readtrack-scroll").first
    is_wider = "seen => seen.querySelector('table').offsetWidth > seen.clientWidth"
    assert scrolled.evaluate(is_wider)
    assert scrolled.locator("table").evaluate(BEYOND) <= 0  # before: cut where the table is
    page.goto(DASHBOARD)
    first = page.locator(".readtrack-of-most-viewed .readtrack-scroll")
    assert not first.evaluate(is_wider)  # before: changes were cut


def test_the_arrow_to_the_site_is_beside_the_last_word_of_the_title(
    tab: Callable[[str], Page], manage: Manage
) -> None:
    page = tab("admin")
    page.goto("/post/2/")
    manage("readtrack", "flush")
    page.goto(DASHBOARD)
    arrow = page.locator(".readtrack-out").first
    box = arrow.bounding_box()
    assert box
    assert min(box["width"], box["height"]) >= 24  # WCAG 2.2, 2.5.8
    assert arrow.evaluate(ALONE) == []  # before: alone on a line in some widths


def test_the_number_of_people_is_renewed_while_the_page_is_looked_at(
    newcomer: Callable[[], BrowserContext],
) -> None:
    page, asked = newcomer().new_page(), list[str]()
    chromium.sign_in(page, "admin")
    heard = complaints(page)
    under_policy(page, STRICT)
    page.clock.install()
    page.goto(DASHBOARD)
    places = page.locator(".readtrack-now")  # in the header, and in the panel "Now"
    number = [re.compile(r"^\d+$")] * 2
    expect(places).to_have_text(number)
    words = page.locator(".readtrack-now-words")
    for emptied in (places, words):
        emptied.evaluate_all("all => all.forEach(one => (one.textContent = ''))")
    page.clock.fast_forward(31_000)
    expect(places).to_have_text(number)  # before: empty for ever in the panel
    expect(words).to_have_text([re.compile(r"now$")] * 2)
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.clock.fast_forward(120_000)
    assert (heard, asked, page.evaluate("violations")) == ([], [], [])
    page.evaluate("Object.defineProperty(document, 'hidden', {value: false})")
    page.route("**/*table=now*", lambda route: route.abort())
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(places).to_have_text(["\N{EN DASH}"] * 2)
    assert len(asked) == 1


def test_two_clicks_tell_where_the_readers_of_the_story_came_from_that_grew_most(
    tab: Callable[[str], Page], manage: Manage, tmp_path: Path
) -> None:
    page = tab("admin")
    page.set_viewport_size({"width": 1280, "height": 900})
    # Today is compared with nothing before it is over, and nothing is compared with days before the
    # first view.
    lines = []
    for post, age in ((3, 20), (30, 1)):  # the latter is old enough to have grown
        at = datetime.now(tz=timezone.utc) - timedelta(days=age)
        request = f'[{at:%d/%b/%Y:%H:%M:%S} +0000] "GET /post/{post}/ HTTP/1.1" 200 9'
        lines.append(f'192.0.2.1 - - {request} "-" "{AGENT}"\n')
    log = tmp_path / "access.log"
    log.write_text("".join(lines))
    manage("readtrack", "import", str(log))
    manage("readtrack", "flush")
    page.goto(DASHBOARD)
    page.locator(".readtrack-looks a").first.click()
    sources = page.get_by_role("heading", name="Sources", exact=True)
    expect(sources).to_be_visible()
    expect(page.locator(".readtrack-plot")).to_be_in_viewport()


@pytest.mark.parametrize(
    ("width", "path"),
    [
        (390, "?tab=groups&period=28"),
        (390, "?period=28"),  # before: Top stories were scrolled to the side
        (640, "?period=28"),  # 1280 pixels, twice as large
        (1280, "object/blog.post:2/?period=28&compare=before"),  # before: the funnel was
    ],
)
def test_a_narrow_table_shows_its_columns_without_scrolling(
    tab: Callable[[str], Page], manage: Manage, width: int, path: str
) -> None:
    page = tab("admin")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/post/2/")
    manage("readtrack", "flush")
    page.goto(DASHBOARD + path)
    tables = page.locator(".readtrack-grid .readtrack-scroll")
    assert tables.get_by_text("Change", exact=True).count()
    hidden = tables.evaluate_all("tables => tables.map(one => one.scrollWidth - one.clientWidth)")
    assert max(hidden) <= 0


def test_categories_keep_what_fits_the_narrowest_phone(
    tab: Callable[[str], Page], manage: Manage
) -> None:
    page = tab("admin")
    page.goto("/post/2/")
    manage("readtrack", "flush")
    for width, columns in ((390, 5), (320, 4)):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{DASHBOARD}?period=28")
        assert page.locator("#readtrack-groups thead th:visible").count() == columns


def test_lists_leave_their_lines_out_on_the_narrowest_phone(
    tab: Callable[[str], Page], demo_url: str
) -> None:
    page = tab("admin")
    Visitor(demo_url, "curl/8.14.1").get("/post/2/")
    lists = page.locator(".readtrack-scroll")
    lines = lists.locator("td.readtrack-trend")

    def is_told() -> bool:
        page.goto(f"{DASHBOARD}?tab=refused")
        return lines.count() > 1  # the reason, and the robot

    assert comes_true(is_told)
    for width, is_drawn in ((390, True), (320, False)):
        page.set_viewport_size({"width": width, "height": 900})
        assert lines.first.is_visible() == is_drawn
        hidden = lists.evaluate_all("lists => lists.map(one => one.scrollWidth - one.clientWidth)")
        assert max(hidden) <= 0  # before: the lines were cut


def test_titles_stay_in_place_while_the_numbers_of_a_list_are_scrolled_to(
    tab: Callable[[str], Page],
) -> None:
    page = tab("admin")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/post/2/")
    page.goto(f"{DASHBOARD}?tab=stories")
    scrolled = page.locator(".readtrack-scroll")
    assert scrolled.evaluate("one => (one.scrollLeft = one.scrollWidth) && one.scrollLeft") > 0
    left = "titles => titles.map(title => title.getBoundingClientRect().left)"
    title = page.locator(".readtrack-stories th[scope=row]")
    assert {*title.evaluate_all(left)} == {*scrolled.evaluate_all(left)}


def test_what_was_published_is_a_link_below_the_chart(tab: Callable[[str], Page]) -> None:
    page = tab("admin")
    page.goto(f"{DASHBOARD}?period=7")
    marks = page.locator(".readtrack-mark:has(.readtrack-tip a)")
    marks.last.locator("summary").click()
    marks.last.locator(".readtrack-tip a").last.click()
    expect(page.locator(".readtrack-menu summary").first).to_contain_text("Since publication")
    page.locator(".breadcrumbs").get_by_role("link", name="Dashboard").click()
    expect(page).to_have_url(re.compile(r"\?period=7$"))


def test_today_beside_a_week_earlier_is_a_click_away(tab: Callable[[str], Page]) -> None:
    page = tab("admin")
    for width in (1280, 390):  # before: on a phone it was in the menu
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(DASHBOARD)
        page.locator(".readtrack-quick").get_by_role("link", name="Today", exact=True).click()
        expect(page).to_have_url(re.compile(r"\?period=today$"))
        expect(page.locator(".readtrack-menu summary").nth(1)).to_contain_text("A week earlier")


def strokes_of_series(page: Page) -> dict[str, str]:
    """Returns the colour of the line of each number that the dashboard's chart can show.

    Seen views are only among them if an earlier test has opened a page that told it was seen.
    """
    colours = {}
    for series in ("views", "visitors", "seen", "reads"):
        page.goto(f"{DASHBOARD}?series={series}")
        if page.locator(f".readtrack-time.readtrack-{series}").count() == 1:
            line = page.locator(LINES).first
            colours[series] = line.evaluate("line => getComputedStyle(line).stroke")
    return colours


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_lines_stand_out_from_the_page(
    tab: Callable[[str], Page], manage: Manage, scheme: Scheme
) -> None:
    manage("readtrack", "flush")  # until then only views can be chosen
    page = tab("admin")
    page.emulate_media(color_scheme=scheme)
    page.goto(DASHBOARD)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    strokes = strokes_of_series(page)
    assert {"views", "visitors", "reads"} <= strokes.keys()
    assert len(set(strokes.values())) == len(strokes)
    changes = page.evaluate(CHANGES)
    assert len(set(changes)) == 2
    assert min(contrast(stroke, paper) for stroke in strokes.values()) >= 3  # WCAG 2.2, 1.4.11
    assert min(contrast(rgb, paper) for rgb in changes) >= 4.5  # 1.4.3


def test_an_admin_that_lacks_djangos_colours_has_lines_that_stand_out_from_light_and_dark(
    tab: Callable[[str], Page], manage: Manage
) -> None:
    page = tab("admin")
    page.route("**/admin/css/**", lambda route: route.abort())
    page.goto("/post/2/")
    manage("readtrack", "flush")  # until then only views can be chosen
    page.goto(DASHBOARD)
    strokes = strokes_of_series(page)
    assert {"views", "visitors", "reads"} <= strokes.keys()
    assert len(set(strokes.values())) == len(strokes)
    for paper in ("rgb(255, 255, 255)", "rgb(18, 18, 18)", "rgb(17, 24, 39)"):
        assert min(contrast(stroke, paper) for stroke in strokes.values()) >= 3
    spark = page.locator(".readtrack-spark polyline").first
    assert spark.evaluate("line => getComputedStyle(line).stroke") == strokes["views"]


@pytest.mark.parametrize(("name", "path"), PAGES)
def test_a_page_obeys_a_strict_policy_and_can_be_used_by_everybody(
    tab: Callable[[str], Page], name: str, path: str
) -> None:
    page = tab(name)
    heard = complaints(page)
    under_policy(page, STRICT)
    page.goto(path)
    assert heard == []
    assert page.evaluate("violations") == []
    page.evaluate(AXE)
    page.evaluate("document.querySelectorAll('details').forEach(each => (each.open = true))")
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        rules = ["color-contrast"] if scheme == "dark" else None  # nothing else depends on it
        assert (scheme, width, page.evaluate(EXAMINE, rules)) == (scheme, width, [])


def test_the_admins_column_shows_and_sorts_what_is_stored(
    tab: Callable[[str], Page], manage: Callable[..., str], browser: Visitor
) -> None:
    browser.get("/post/33/")
    manage("readtrack", "flush")
    page = tab("admin")
    page.goto(POSTS)
    heading = page.locator("th.column-linked_views .text a")
    expect(heading).to_have_text("Views")
    for direction in ("asc", "desc"):
        heading.click()
        expect(page.locator(f"th.column-linked_views.{direction}ending")).to_be_visible()
    stored = [int(text) for text in page.locator("td.field-linked_views").all_inner_texts()]
    assert stored == sorted(stored, reverse=True)
    assert stored[0] > 0


def test_a_small_screen_scrolls_only_downwards(tab: Callable[[str], Page]) -> None:
    page = tab("reader1")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/")
    expect(dot(page, "City Life")).to_be_visible()
    width, visible = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert (width, visible) == (390, 390)
