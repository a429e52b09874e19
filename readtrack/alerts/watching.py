"""Looks for what is unusual: asks Redis and SQL for the numbers that `conditions.py` judges."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Model
from django.urls import NoReverseMatch, reverse

from readtrack import buckets
from readtrack.access import numbers_url
from readtrack.alerts import conditions, day_before, minutes, records
from readtrack.alerts.models import Alert
from readtrack.alerts.options import alert_settings
from readtrack.alerts.records import Sighting
from readtrack.conf import logger
from readtrack.doctor import findings, measurements
from readtrack.doctor.wording import duration
from readtrack.lines import one_line
from readtrack.numbers import hours_of_models
from readtrack.numbers.published import published_at
from readtrack.numbers.reports.time_series import merged
from readtrack.numbers.reports.usual_views import rated
from readtrack.numbers.site_address import absolute
from readtrack.numbers.sql import history, usual
from readtrack.numbers.sql.usual import NOTHING, AskedUsual, Bands, name_of_week
from readtrack.numbers.sql.usual_week import slot_of
from readtrack.numbers.usual_now import (
    MINUTES,
    DayBefore,
    Excess,
    Kind,
    Story,
    kind_of,
    levels_of,
    names_of_kind,
    story_of,
)
from readtrack.sql import runs
from readtrack.store import connection, keys, scripts
from readtrack.subjects import counted_models, label_of, subject_of, subjects_by_model
from readtrack.texts import line_of

TRIES = 3  # after which Redis is gone
PAUSE = 5.0  # seconds between two tries


@dataclass(slots=True)
class Seen:
    """What was seen in one look."""

    sightings: list[Sighting] = field(default_factory=list)
    over: list[Alert] = field(default_factory=list)  # open alerts that are over


def look(*, at: datetime) -> Seen:
    """Looks for what is unusual, and for open alerts that are over. Writes nothing to SQL."""
    alerts = records.open_alerts()
    seen = Seen()
    problem = redis_problem()
    if problem:
        # It is why flushes are late, so nothing else is looked at.
        seen.sightings.append(
            Sighting(
                Alert.Kind.REDIS, details=problem, url=_address("readtrack_dashboard_changelist")
            )
        )
        return seen
    seen.over += [alert for alert in alerts if alert.kind == Alert.Kind.REDIS]
    _look_at_flushes(seen, alerts, at=at)
    try:
        _look_at_views(seen, alerts, at=at)
    except (connection.RedisError, OSError):
        pass  # it is gone since, which the next look tells
    except Exception:  # the site's own code, or a table of it
        logger.exception("Alerts could not look at the views.")
    return seen


def redis_problem() -> str:
    """Returns why Redis does not answer; "" if all its servers do.

    It is asked TRIES times, because a fail-over takes some seconds.
    """
    problem = _problem_of_servers()
    for _ in range(TRIES - 1):
        if not problem:
            break
        time.sleep(PAUSE)
        problem = _problem_of_servers()
    return problem


def _problem_of_servers() -> str:
    try:
        for server in connection.servers():
            server.ping()
    except connection.RedisError as error:
        return findings.failure(error).message
    except OSError as error:
        return one_line(f"{type(error).__name__}: {error}")
    return ""


def _look_at_flushes(seen: Seen, alerts: Sequence[Alert], *, at: datetime) -> None:
    """Sees whether flushes are late. Before the first flush nothing is said."""
    flushes = measurements.flushes()
    if not _are_late(flushes, alerts, at=at):
        seen.over += [alert for alert in alerts if alert.kind == Alert.Kind.FLUSH]
        return
    details = "No flush has succeeded yet."
    if flushes.age is not None:
        details = f"The last successful flush began {duration(flushes.age)} ago."
    if flushes.last_error:
        details += f" The last one failed: {flushes.last_error}"
    address = _address("readtrack_flushrun_changelist")
    seen.sightings.append(Sighting(Alert.Kind.FLUSH, details=one_line(details), url=address))


def _are_late(flushes: measurements.Flushes, alerts: Sequence[Alert], *, at: datetime) -> bool:
    """Returns True if flushes are late, and not because Redis was gone a moment ago."""
    if not flushes.has_record or any(alert.kind == Alert.Kind.REDIS for alert in alerts):
        return False
    redis_came_back = records.last_end(Alert.Kind.REDIS)
    if redis_came_back is not None and at - redis_came_back <= runs.late_after():
        return False
    return flushes.age is None or flushes.age > runs.late_after()


def _look_at_views(seen: Seen, alerts: Sequence[Alert], *, at: datetime) -> None:
    """Sees what the site and its stories have. Raises redis.RedisError."""
    name = name_of_week()
    week = usual.stored(AskedUsual([name])).bands.get(name, {})
    _look_at_site(seen, alerts, week=week, at=at)
    _look_at_stories(seen, alerts, week=week, at=at)


def _look_at_site(seen: Seen, alerts: Sequence[Alert], *, week: Bands, at: datetime) -> None:
    """Sees whether the site has far fewer views than usual."""
    present = buckets.hour_index(at)
    hours = range(present - 2, present + 1)
    site = conditions.Site(
        views=_views_of_hours(hours),
        usual=[week.get(slot_of(hour), NOTHING).usual for hour in hours],
        running=(at - buckets.hour_start(present)) / buckets.HOUR,
    )
    divisor = alert_settings().site_fall
    shortfall = conditions.shortfall_of(site, divisor=divisor)
    if shortfall:
        address = _address("readtrack_dashboard_changelist")
        seen.sightings.append(Sighting(Alert.Kind.SITE, url=address, **shortfall._asdict()))
    if conditions.is_site_back(site, divisor=divisor):
        seen.over += [alert for alert in alerts if alert.kind == Alert.Kind.SITE]


def _views_of_hours(hours: range) -> list[int]:
    """Returns the views of the whole site in each of the last hours (since 1970)."""
    labels = [label_of(model) for model in counted_models()]
    columns = [f"{label}{tag}" for label in labels for tag in keys.past_tags()]
    # SQL is read before Redis, because what is written in between would count twice.
    stored = history.sums(columns, since=hours.start, until=hours.stop)
    live = scripts.run_all(*hours_of_models.calls(labels, hours), patient=True)
    views = merged(stored, live)
    return [views[hour] for hour in hours]


def stories_from(*, at: datetime) -> datetime | None:
    """Returns when Redis has been watched for long enough to tell stories; None if it has now.

    Raises redis.RedisError.
    """
    begin = _told_from(minutes.watched_since(at=at))
    return begin if at < begin else None


def _told_from(watched_since: datetime) -> datetime:
    """Returns from when on stories are told, if Redis has been watched since that time."""
    return watched_since + MINUTES * buckets.MINUTE


def _look_at_stories(seen: Seen, alerts: Sequence[Alert], *, week: Bands, at: datetime) -> None:
    """Sees whether stories have far more views than usual."""
    since = minutes.watched_since(at=at)
    if at < _told_from(since):
        return
    times = alert_settings().story
    least = alert_settings().least
    sightings = []
    stories = {}
    for obj, story in _stories(week, since=since, at=at):
        stories[subject_of(obj)] = story
        excess = conditions.excess_of(story, times=times, least=least)
        if excess:
            sightings.append(_sighting(obj, excess))
    # As not all of very many are told.
    sightings.sort(key=lambda sighting: sighting.views or 0, reverse=True)
    seen.sightings += sightings
    for alert in alerts:
        if alert.kind == Alert.Kind.STORY and _is_over(alert, stories.get(alert.subject)):
            seen.over.append(alert)


def _is_over(alert: Alert, story: Story | None) -> bool:
    """Returns True if an alert about a story is over; None is a story that is hardly viewed now."""
    if story is None:
        return True
    settings = alert_settings()
    return conditions.is_story_over(
        story, minutes=alert.minutes or 0, times=settings.story, least=settings.least
    )


def _sighting(obj: Model, excess: Excess) -> Sighting:
    return Sighting(
        Alert.Kind.STORY,
        subject=subject_of(obj),
        title=line_of(obj),
        url=_with_site(numbers_url(obj)),
        **excess._asdict(),
    )


def _stories(week: Bands, *, since: datetime, at: datetime) -> list[tuple[Model, Story]]:
    """Returns the stories that are viewed now and may be told or end an alert, with their numbers.

    `since` is since when Redis has its minutes and hours.
    """
    views = minutes.by_minute(minutes.viewed_now(at=at), at=at)
    fewest = alert_settings().least * conditions.OVER
    viewed = {subject: numbers for subject, numbers in views.items() if sum(numbers) >= fewest}
    if not viewed:
        return []
    objs = {subject_of(obj): obj for obj in _objects(viewed)}
    kinds = _kinds([*objs.values()], at=at)
    hours = day_before.by_hour(objs, watched_since=since, at=at)
    levels = levels_of(week)
    stories = []
    for subject, obj in objs.items():
        views_by_hour = hours[subject]
        story = story_of(
            viewed[subject],
            kinds.get(subject, Kind()),
            levels=levels,
            day_before=DayBefore(sum(views_by_hour.values()), [*views_by_hour]),
            published=published_at(obj),
            at=at,
        )
        stories.append((obj, story))
    return stories


def _objects(subjects: Mapping[str, Any]) -> Iterator[Model]:
    """Yields the objects of `subjects` that the site shows. Makes a query for each model."""
    for model, subjects_by_pk in subjects_by_model(subjects).items():
        yield from model._default_manager.filter(pk__in=[*subjects_by_pk])


def _kinds(objs: Sequence[Model], *, at: datetime) -> dict[str, Kind]:
    """Returns what is usual for the kind of each object, as far as that is known."""
    candidates = rated(objs)
    names = {name for one in candidates.values() for name in names_of_kind(one)}
    stored = usual.stored(AskedUsual([*names])).bands
    return {subject: kind_of(one, stored, at=at) for subject, one in candidates.items()}


def _address(view_name: str) -> str:
    """Returns the address of a page of the admin; that of the site if there is no admin."""
    try:
        return _with_site(reverse(f"admin:{view_name}"))
    except NoReverseMatch:
        return _with_site("")


def _with_site(path: str) -> str:
    """Returns the address of a path of the site; "" if the site's own function fails."""
    try:
        return absolute(alert_settings().site, path)
    except Exception:
        logger.exception("The function of ALERTS['site'] failed; the alert has no link.")
        return ""
