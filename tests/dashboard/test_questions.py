"""Twelve questions of an editor: each answer is at most one link from the overview, and right by SQL."""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any, NamedTuple

import pytest
from django.db.models import Max, Sum
from django.test import Client
from pytest_django import Settings

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.models import BreakdownHistory, DayBreakdown, DayVisitors, History
from readtrack.numbers.scope import Span
from readtrack.store import skips
from readtrack.store.skips import skip_buffer
from readtrack.subjects import subject_of
from tests.dashboard.test_groups import store
from tests.site.models import Article
from tests.support import factories, usual
from tests.support.frozen import freeze_time
from tests.support.people import add_people

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"
MODEL = "site.article"
FRIDAY = "2026-11-20T12:00:30"


class Site(NamedTuple):
    """A site with numbers, and what its editor sees."""

    client: Client
    overview: Any
    new: Article  # which does well
    old: Article  # which is still read
    grown: Article  # published before the days that it grew beside

    def opened(self, address: str) -> Any:
        """Returns the page behind a link of the overview. Fails if the overview has no such link."""
        assert f'href="{address}"'.replace("&", "&amp;") in self.overview.text, address
        return self.client.get(address if address.startswith("/") else DASHBOARD + address)

    def period(self, **given: str) -> Any:
        """Returns the page of a period that the overview's menu has."""
        return self.opened(self.overview.context["scope"].address(**given))

    def story(self) -> Any:
        """Returns the page of the new story, to which the overview leads from its list."""
        rows = self.overview.context["list"].rows
        [link] = [row.link for row in rows if row.head["text"] == str(self.new)]
        return self.opened(link)


def by_sql(name: str, span: Span) -> int:
    """Returns what a subject or a model gained in the span, by the rows of its history."""
    rows = History.objects.filter(subject=name)
    ends = [
        rows.filter(hour__lt=buckets.hour_index(end)).aggregate(last=Max("views"))["last"] or 0
        for end in (span.since, span.until + timedelta(hours=1))
    ]
    return int(ends[1] - ends[0])


def before_by_sql(name: str, scope: Any) -> int:
    """Returns what it gained in the time that the page compares with."""
    rows = History.objects.filter(subject=name)
    ends = [
        rows.filter(hour__lt=buckets.hour_index(end)).aggregate(last=Max("views"))["last"] or 0
        for end in scope.before
    ]
    return int(ends[1] - ends[0])


def figure(page: Any, name: str) -> Any:
    return next(figure for figure in page.context["figures"] if figure.name == name)


def table(page: Any, name: str) -> Any:
    return next(one["table"] for one in page.context["tables"] if one["table"].name == name)


def look(site: Site, title: str) -> Any:
    return next(one for one in site.overview.context["looks"] if one.title == title)


@pytest.fixture
def site(settings: Settings, admin_client: Client) -> Iterator[Site]:
    with freeze_time(FRIDAY):
        yield made(settings, admin_client)


def made(settings: Settings, client: Client) -> Site:
    """Returns a site with numbers for each question."""
    settings.READTRACK = {"NUMBERS": {"dimensions": ["channel", "campaign"]}}
    politics, culture = factories.category(name="Politics"), factories.category(name="Culture")
    usual.peers(views=20, category=politics)
    new = usual.article(timedelta(hours=50), views=64, category=politics)
    published = buckets.now() - 400 * buckets.DAY
    old = Article.objects.create(category=culture, published_at=published)
    History.objects.filter(subject=subject_of(new)).delete()
    today = local_time.today()
    gained: dict[tuple[str, int], int] = {}
    for age, views in ((350, 5), (13, 90), (9, 400), (7, 30), (3, 250), (0, 10)):
        hour = local_time.first_hour_of(today - age * buckets.DAY) + 2
        gained[subject_of(old), hour] = views
    grown = Article.objects.create(published_at=buckets.now() - 60 * buckets.DAY)
    for age, views in ((9, 3), (2, 20)):
        gained[subject_of(grown), local_time.first_hour_of(today - age * buckets.DAY) + 2] = views
    published_hour = buckets.hour_index(buckets.now()) - 50
    for hours, views in ((0, 60), (5, 8), (26, 9)):
        gained[subject_of(new), published_hour + hours] = views
    for name in (f"reads:{subject_of(old)}", f"reads:{MODEL}"):
        gained[name, local_time.first_hour_of(today - 3 * buckets.DAY) + 2] = 70
    History.objects.filter(subject=MODEL).delete()
    store(gained)
    usual.renew()
    for age, field, count in ((2, "search", 60), (1, "direct", 17)):
        row = {"subject": subject_of(new), "kind": "views:channel", "field": field}
        DayBreakdown.objects.create(**row, day=today - age * buckets.DAY, count=count)
    row = {"subject": subject_of(grown), "kind": "views:channel", "field": "search"}
    DayBreakdown.objects.create(**row, day=today - 2 * buckets.DAY, count=20)
    hour = local_time.first_hour_of(today - 3 * buckets.DAY) + 2
    row = {"subject": MODEL, "kind": "views:campaign", "field": "letter / may"}
    BreakdownHistory.objects.create(**row, hour=hour, count=33)
    for number, day in enumerate(days_of_last_week()):
        add_people([MODEL], [f"p{number}"], day=day)
    skip_buffer.add(skips.key_of(buckets.now()), ["bot", "bot", "repeat", "bot:Googlebot"])
    skip_buffer.send_rest()
    return Site(client, client.get(DASHBOARD), new, old, grown)


def days_of_last_week() -> list[date]:
    """Returns the days of the last week, from Monday to Sunday."""
    today = local_time.today()
    monday = today - (7 + today.weekday()) * buckets.DAY
    return [monday + number * buckets.DAY for number in range(7)]


Answer = tuple[Any, Any]  # as a page says it, and as SQL has it


def people_of_last_week(site: Site) -> Answer:
    page = site.period(period="last-week")
    rows = DayVisitors.objects.filter(subject=MODEL, day__in=days_of_last_week())
    return figure(page, "visitors").value, str(rows.aggregate(all=Sum("visitors"))["all"])


def sources_of_a_story(site: Site) -> Answer:
    found = table(site.story(), "by-channel")
    rows = DayBreakdown.objects.filter(subject=subject_of(site.new), kind="views:channel")
    said = {row.filters["channel"]: row.values[1] for row in found.rows}
    return said, dict(rows.values_list("field").annotate(Sum("count")))


def why_it_grew(site: Site) -> Answer:
    [item] = [one for one in look(site, "Grew most").items if one.title == str(site.grown)]
    found = table(site.opened(item.link), "by-channel")
    scope = site.overview.context["data"].scope
    subject = subject_of(site.grown)
    more = by_sql(subject, scope.span) - before_by_sql(subject, scope)
    return (item.number, found.rows[0].filters["channel"]), (f"+{more}", "search")


def today_and_a_week_ago(site: Site) -> Answer:
    page = site.period(period="today")
    said = figure(page, "views")
    scope = page.context["data"].scope
    expected = (str(by_sql(MODEL, scope.span)), str(before_by_sql(MODEL, scope)))
    return (said.value, said.before), expected


def by_the_hour(site: Site) -> Answer:
    data = site.story().context["data"]
    hours = [buckets.hour_index(start) for start in data.starts]
    said = {
        hour: point.views
        for hour, point in zip(hours, data.chart.points, strict=True)
        if point.views
    }
    expected = {}
    last = 0
    for row in History.objects.filter(subject=subject_of(site.new)).order_by("hour"):
        expected[row.hour] = row.views - last
        last = row.views
    return said, expected


def section_that_loses(site: Site) -> Answer:
    rows = table(site.overview, "views-by-section").rows
    lost = [str(row.values[0]) for row in rows if row.values[1] < row.values[2]]
    scope = site.overview.context["data"].scope
    expected = []
    for category in ("Politics", "Culture"):
        subjects = [subject_of(one) for one in Article.objects.filter(category__name=category)]
        now = sum(by_sql(subject, scope.span) for subject in subjects)
        if now < sum(before_by_sql(subject, scope) for subject in subjects):
            expected.append(category)
    return lost, expected


def old_stories(site: Site) -> Answer:
    said = [(item.title, item.number) for item in look(site, "Still read").items]
    views = by_sql(subject_of(site.old), site.overview.context["data"].scope.span)
    return said, [(str(site.old), f"{views} views")]


def doing_well(site: Site) -> Answer:
    story = site.story().context["story"]
    views = History.objects.filter(subject=subject_of(site.new)).aggregate(all=Max("views"))["all"]
    return story.text.partition(" views")[0], f"Far better than usual. It has {views}"


def a_campaign(site: Site) -> Answer:
    rows = site.overview.context["campaigns"].rows
    said = [(row.head["text"], row.cells[0]["text"]) for row in rows]
    of_campaign = BreakdownHistory.objects.filter(kind="views:campaign")
    return said, [(one.field, str(one.count)) for one in of_campaign]


def read_to_the_end(site: Site) -> Answer:
    span = site.overview.context["data"].scope.span
    return figure(site.overview, "reads").value, str(by_sql(f"reads:{MODEL}", span))


def robots(site: Site) -> Answer:
    """Redis alone has the hits that are not counted: the fixture has added two of robots, one by name."""
    rows = site.overview.context["refused"].rows
    page = site.opened(site.overview.context["refused"].more.address)
    named = [row.values[:2] for row in table(page, "robots").rows]
    return (rows[0].cells[0]["text"], [tuple(one) for one in named]), ("2", [("Googlebot", 1)])


def what_next(site: Site) -> Answer:
    said = [sentence.title for sentence, _link in site.overview.context["next_steps"]]
    span = site.overview.context["data"].scope.span
    many = [one for one in Article.objects.all() if by_sql(subject_of(one), span) >= 200]
    return said[:1], [str(one) for one in many]


QUESTIONS: list[Callable[[Site], Answer]] = [
    people_of_last_week,
    sources_of_a_story,
    why_it_grew,
    today_and_a_week_ago,
    by_the_hour,
    section_that_loses,
    old_stories,
    doing_well,
    a_campaign,
    read_to_the_end,
    robots,
    what_next,
]


def test_each_of_twelve_answers_is_one_link_away_and_right_by_sql(site: Site) -> None:
    answers = {question.__name__: question(site) for question in QUESTIONS}
    assert len(answers) == 12
    said = {name: answer[0] for name, answer in answers.items()}
    assert said == {name: answer[1] for name, answer in answers.items()}
    assert all(said.values())


def test_the_page_of_an_older_story_has_its_week_and_its_first_hours_one_link_away(
    site: Site,
) -> None:
    published = buckets.now() - 60 * buckets.DAY
    story = Article.objects.create(published_at=published)
    first_hour = buckets.hour_index(published)
    this_week = local_time.first_hour_of(local_time.today() - buckets.DAY)
    store({(subject_of(story), first_hour): 7, (subject_of(story), first_hour + 3): 5})
    History.objects.create(subject=subject_of(story), hour=this_week, views=21, visitors=0)
    address = f"{DASHBOARD}object/{subject_of(story)}/"
    quick = {str(one.label): one for one in site.client.get(address).context["quick"]}
    assert list(quick) == ["Today", "This week", "Since publication", "First 7 days"]
    week = site.client.get(address + quick["This week"].address)
    assert figure(week, "views").value == "9"
    page = site.client.get(address + quick["First 7 days"].address)
    hours = [point.views for point in page.context["data"].chart.points if point.views]
    assert hours == [7, 5]  # before: by the day, in three clicks
    [chosen] = [one.label for one in page.context["quick"] if one.is_chosen]
    assert chosen == "First 7 days"
    new = {str(one.label) for one in site.story().context["quick"]}
    assert new == {"Today", "This week", "Since publication"}
