"""What was acknowledged, what SQL holds of it, and the promises of the flush between the two.

1. SQL never decreases.
2. SQL holds no more than was acknowledged, for each count.
3. Without a loss of Redis both are equal.
4. Several flushes at once are as one.
5. A kill at any step is no kill.
6. With the database down for some runs, and up again, both are equal.
7. Flushing again writes no row.
8. An empty Redis never shows less than SQL.
9. An old snapshot, or a replica that lagged, is lifted by one flush.
10. A restored backup of SQL is healed by the next full flush.
11. A deleted row is no error and makes no row, and its keys go.

They hold alike for totals, unique visitors (within the error of a sketch), the stages of funnels,
reads, breakdowns, and the hours of the model; history of posts is held to 1 to 3. What a post gained
by the day adds up to its breakdown in SQL, whatever happens. Promises 4, 5 and
6 are what the state machine does; the others are methods of `Books`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from django.db.models import Max
from redis import Redis

from readtrack import buckets, reports
from readtrack.models import Archive
from readtrack.numbers import hours_of_models
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import Breakdown, BreakdownHistory, DayBreakdown, History
from readtrack.numbers.sql import group_sums, history, history_marks
from readtrack.numbers.sql.memberships import GROUPS
from readtrack.store import counters, keys, scripts
from readtrack.subjects import subject_of_row
from tests.site.models import Post

OF_GROUPS = [
    *group_sums.KINDS,
    *group_sums.KINDS_OF_DAYS,
    *group_sums.KINDS_OF_MONTHS,
    history_marks.KIND,
]

Name = tuple[str, str]  # of a count: family and field

VIEWS: Name = ("", "")
VISITORS: Name = ("visitors", "")
ENTERED, CLICKED = ("funnel", "view"), ("funnel", "click")
READ, SEEN, ENGAGED = ("reading", "reads"), ("reading", "seen"), ("reading", "engaged")
DEVICES = ("phone", "desktop")
MODEL = "site.post"
EVER = timedelta(days=3000)


def on(device: str) -> Name:
    return "views:device", device


def slack(count: int) -> int:
    """Returns the error that a sketch of so few visitors may have."""
    return 1 + count // 30


def _charted(of: type[Post] | None) -> int:
    """Returns the views that the chart of the model, or of the site, shows in all."""
    return sum(
        point.views for point in numbers_reports.series(of, since=buckets.now() - EVER, by="month")
    )


class Books:
    """Counts by primary key and name, and the promises as checks."""

    def __init__(self) -> None:
        self.counted: defaultdict[Any, Counter[Name]] = defaultdict(Counter)
        self.seen: defaultdict[Any, Counter[Name]] = defaultdict(
            Counter
        )  # what SQL held when we last looked
        # What SQL has to hold after the next flush, at least.
        self.owed: defaultdict[Any, Counter[Name]] = defaultdict(Counter)
        # What a flush that began before a reset may still write, or what a backup brought back.
        self.carried: dict[Any, Counter[Name]] = {}
        self.before_reset: defaultdict[Any, Counter[Name]] = defaultdict(Counter)
        self.faint: set[Any] = set()  # whose sketch has lost visitors since it was archived
        self.gone: set[Any] = set()  # rows that were deleted
        self.is_vague = False  # since a loss that hides what is counted until the next full flush
        self.has_sketches = True  # unless the strategy for unique visitors is another than "hll"
        self.is_whole = True  # nothing was ever lost, reset or deleted
        # Views dated hours back wait for the next archive with what hashes gained by them.
        self.has_late_hashes = False
        # Views of the whole model, which no reset lowers: counted, and owed as above.
        self.model_counted = self.model_owed = 0
        self.is_model_exact = True  # what is owed of it is all that there is
        self.ever: Counter[Name] = Counter()  # of all posts, whatever was reset or deleted
        self._visitors: defaultdict[Any, set[str]] = defaultdict(set)
        self._history: dict[tuple[str, int], int] = {}
        self._sketches: dict[str, int] = {}

    # What happens

    def view(self, pk: Any, *, visitor: str, device: str) -> None:
        self._visitors[pk].add(visitor)
        self.model_counted += 1
        self.model_owed += 0 if self.is_vague else 1
        self._count(pk, VIEWS, ENTERED, on(device))
        is_new = len(self._visitors[pk]) > self.counted[pk][VISITORS]
        if is_new:
            self.counted[pk][VISITORS] += 1
        if is_new and not self.is_vague and pk not in self.faint:
            self.owed[pk][VISITORS] += 1

    def step(self, pk: Any) -> None:
        self._count(pk, ENTERED, CLICKED)

    def see(self, pk: Any) -> None:
        self._count(pk, SEEN)

    def read(self, pk: Any) -> None:
        self._count(pk, READ, ENGAGED, ("reading", "5"), ("reading", "8"))

    def _count(self, pk: Any, *names: Name) -> None:
        self.counted[pk].update(names)
        self.ever.update(names)
        if not self.is_vague:
            self.owed[pk].update(names)

    def lose(self, pks: Iterable[Any], *families: str, is_vague: bool) -> None:
        """From here on SQL has to hold what it holds now of these families (or of all), and later
        counts.

        Unless those are vague: a merge may hide them.
        """
        stored = self.stored()
        for pk in pks:
            for name in self.owed[pk]:
                if not families or name[0] in families:
                    self.owed[pk][name] = min(self.owed[pk][name], stored[pk][name])
            if not families or VISITORS[0] in families:
                self.faint.add(pk)
        if not families:
            self.model_owed = min(self.model_owed, self.model_stored())
        self.is_vague = self.is_vague or is_vague
        self.is_whole = False

    def neglect(self, pks: Iterable[Any]) -> None:
        """The hours of models, and the buckets that say what changed, have expired before a flush
        stored them. So hashes wait for the archive, or without a total for the next view.
        """
        self.model_owed = min(self.model_owed, self.model_stored())
        self.is_model_exact = False
        self.lose(pks, *dict([ENTERED, READ, *map(on, DEVICES)]), is_vague=False)

    def reset(self, pk: Any, *, is_alone: bool) -> None:
        self.before_reset[pk] += self.counted[pk]
        if not is_alone:
            self.carried[pk] = self.carried.get(pk, Counter()) + self.counted[pk]
        for book in (self.counted, self.seen, self.owed):
            book[pk] = Counter()
        self._visitors[pk] = set()
        self.forget_history()

    def haunt(self, pks: Iterable[Any]) -> None:
        """Counts from before a reset may be back, because the reset was forgotten."""
        for pk in pks:
            if pk in self.before_reset:
                self.carried[pk] = self.carried.get(pk, Counter()) + self.before_reset[pk]
                self.counted[pk] += self.before_reset[pk]

    def forget_history(self) -> None:
        self._history, self._sketches, self.is_whole = {}, {}, False

    # What must hold

    def check(self) -> None:
        """Checks promises 1 and 2."""
        stored = self.stored()
        for pk, counts in stored.items():
            for name, count in counts.items():
                most = self._most(pk, name)
                assert count <= most, (
                    f"{pk}: SQL holds {count} of {name}, more than the {most} that were counted"
                )
            for name, count in self.seen[pk].items():
                if pk not in self.carried and not self._is_passing(pk, name):
                    assert counts[name] >= count, (
                        f"{pk}: {name} decreased in SQL from {count} to {counts[name]}"
                    )
        assert not self.gone & stored.keys(), "11: a row was made out of a count"
        self.seen = stored
        assert self.model_stored() <= self.model_counted, (
            "2: the model's hours hold more than was counted"
        )
        for kind, gained in self.gained_by_groups().items():
            assert gained <= self.model_counted, (
                f"2: {kind} gained {gained}, more than the {self.model_counted} counted"
            )
        for name, gained in self.gained().items():
            assert gained <= self.ever[name], (
                f"2: {name} gained {gained}, more than the {self.ever[name]} counted"
            )
        self._check_history()
        self._check_days(stored)

    def _check_days(self, stored: Mapping[Any, Counter[Name]]) -> None:
        """Checks that each post gained by the day what SQL has of its breakdown and funnel.

        What is written late of a reset post goes with the forgotten reset.
        """
        gained = self.gained_by_day()
        for pk, counts in stored.items():
            for name in (ENTERED, CLICKED, *map(on, DEVICES)):
                if not self._is_passing(pk, name):
                    assert gained[pk][name] == counts[name], (
                        f"{pk}: gained {gained[pk][name]} of {name} by the day, of {counts[name]}"
                    )

    def _most(self, pk: Any, name: Name) -> int:
        """Returns what may be stored at most. Without a sketch, visitors who return after a loss
        count again.
        """
        if name == VISITORS and not self.has_sketches:
            name = VIEWS
        most = self.counted[pk][name] + self.carried.get(pk, Counter())[name]
        return most + slack(most) if name == VISITORS else most

    def _is_passing(self, pk: Any, name: Name) -> bool:
        """Returns True for a count of a reset post's hash: if written late, it goes with the
        reset's mark.
        """
        return pk in self.before_reset and name not in (VIEWS, VISITORS)

    def _check_history(self) -> None:
        rows = list(
            History.objects.order_by("subject", "hour").values_list("subject", "hour", "views")
        )
        found = {(subject, hour): views for subject, hour, views in rows}
        for key, views in found.items():
            assert views >= self._history.get(key, 0), f"history of {key} decreased"
        if self.is_whole:
            for (subject, _, views), (following, _, more) in pairwise(rows):
                assert subject != following or views <= more, f"history of {subject} goes down"
        self._history = found

    def check_shown(self, pks: Sequence[Any]) -> None:
        """Checks promise 8, and that no more is shown than was counted."""
        posts = {post.pk: post for post in Post.objects.filter(pk__in=pks)}
        shown, visitors = reports.views(posts.values()), reports.visitors(posts.values())
        assert all(shown[post] >= post.view_count for post in shown)
        assert all(visitors[post] >= post.visitor_count for post in visitors)
        model, stored = _charted(Post), self.model_stored()
        assert stored <= model, f"8: {stored} stored, the chart shows {model}"
        if self.carried:
            return
        assert model <= self.model_counted
        # A Redis that was restored from before a reset drops what it has from before with the next
        # flush.
        certain = [pk for pk in posts if not self.is_vague or pk not in self.before_reset]
        assert all(shown[posts[pk]] <= self.counted[pk][VIEWS] for pk in certain)
        if self.is_vague:
            return
        assert all(visitors[post] <= self._most(pk, VISITORS) for pk, post in posts.items())
        self._check_hashes_shown(
            [post for post in posts.values() if post.pk not in self.before_reset]
        )

    def _check_hashes_shown(self, posts: list[Post]) -> None:
        shown = {
            on(value): count for value, count in numbers_reports.breakdown(posts, "device").items()
        }
        shown |= {("funnel", stage.name): stage.count for stage in numbers_reports.funnel(posts)}
        for post in posts:
            found = numbers_reports.reading(post)
            assert found.views >= found.seen >= found.engaged >= found.reads, found
        together = numbers_reports.reading(posts)
        shown |= {READ: together.reads, ENGAGED: together.engaged, SEEN: together.seen}
        for name in (ENTERED, CLICKED, READ, ENGAGED, SEEN, *map(on, DEVICES)):
            stored, counted = (
                sum(book[post.pk][name] for post in posts) for book in (self.seen, self.counted)
            )
            assert stored <= shown.get(name, 0) <= counted, (
                f"{name}: not {stored} <= {shown.get(name, 0)} <= {counted}"
            )

    def check_flushed(self, pks: Sequence[Any], *, redis: Redis, is_full: bool) -> None:
        """Checks promises 3, 9 and 10 after a flush that ran alone."""
        for pk, counts in self.carried.items():
            # A row is put right by now, its hashes in SQL when the mark of the reset goes (see
            # resets.finish).
            self.counted[pk] += Counter(
                {name: n for name, n in counts.items() if name not in (VIEWS, VISITORS)}
            )
            self.seen[pk] = Counter()
        self.carried = {}
        self.check()
        for pk in pks:
            for name, count in self.owed[pk].items():
                if self._is_passing(pk, name):
                    continue
                least = count - slack(count) if name == VISITORS else count
                assert self.seen[pk][name] >= least, (
                    f"{pk}: of {name} {count} are owed, {self.seen[pk][name]} stored"
                )
        stored = self.model_stored()
        assert _charted(None) == _charted(Post), (
            "the charts of the site and of its only model differ"
        )
        assert stored >= self.model_owed, (
            f"of the model's views {self.model_owed} are owed, {stored} stored"
        )
        if not is_full:
            return
        is_exact = self.is_model_exact and not self.is_vague
        assert not is_exact or stored == self.model_owed, (
            f"{stored} stored of {self.model_owed} views of the model"
        )
        self.model_owed, self.is_model_exact = stored, True
        self._check_alike(pks)
        self._check_sketches(redis)
        if self.is_whole:
            self._check_series(pks)
        self.owed = defaultdict(Counter, {pk: Counter(self.seen[pk]) for pk in pks})
        self.is_vague = False

    def _check_alike(self, pks: Sequence[Any]) -> None:
        """Checks that Redis and SQL agree on all that Redis holds."""
        subjects = {subject_of_row(Post, pk): pk for pk in pks}
        totals = scripts.run_all(*map(counters.totals, scripts.parted(subjects)))
        for subject, total in (pair for some in totals for pair in some.items()):
            assert total == (self.seen[subjects[subject]][VIEWS], True), "Redis and SQL differ"
        present = buckets.hour_index(buckets.now())
        answers = scripts.run_all(*hours_of_models.calls([MODEL], range(present - 23, present + 1)))
        for model, found in hours_of_models.by_model(answers).items():
            hours = history.sums([model], since=present - 24, until=present + 2)[model].by_hour()
            for hour, total in found.items():
                assert total == (hours.get(hour, 0), True), "Redis and history differ"

    def _check_sketches(self, redis: Redis) -> None:
        """Checks that no archived sketch holds fewer visitors than before."""
        found = {}
        for subject, sketch in Archive.objects.exclude(sketch=b"").values_list("subject", "sketch"):
            redis.set("sketch", bytes(sketch))
            found[subject] = int(redis.pfcount("sketch"))
            redis.unlink("sketch")
            assert found[subject] >= self._sketches.get(subject, 0) - slack(found[subject]), (
                "a sketch was lost"
            )
        self._sketches = found

    def _check_series(self, pks: Sequence[Any]) -> None:
        """Checks that the history of posts adds up to their totals if nothing was lost."""
        posts = Post.objects.filter(pk__in=pks)
        for post in posts:
            assert (
                sum(point.views for point in numbers_reports.series(post))
                == self.counted[post.pk][VIEWS]
            )
        for of in (None, Post):
            assert sum(point.views for point in numbers_reports.series(of)) == self.model_counted, (
                of
            )
        assert self.has_late_hashes or self.gained() == +Counter(
            {name: self.ever[name] for name in (ENTERED, CLICKED, *map(on, DEVICES))}
        )

    def check_gone(self, redis: Redis) -> None:
        """Checks promise 11."""
        for pk in self.gone:
            subject = subject_of_row(Post, pk)
            assert not redis.exists(keys.total(subject), keys.hll(subject)), (
                "11: keys of a deleted row stay"
            )

    def model_stored(self) -> int:
        """Returns the views of the model in history."""
        rows = History.objects.filter(subject__in=[f"{MODEL}{tag}" for tag in keys.tags()])
        return sum(
            rows.values("subject").annotate(most=Max("views")).values_list("most", flat=True)
        )

    def gained(self) -> Counter[Name]:
        """Returns what all posts together gained of their breakdowns and funnels, by the history of
        the model. Leaves out what their categories, authors and ages gained, which history has too.
        """
        found: Counter[Name] = Counter()
        rows = BreakdownHistory.objects.exclude(kind__in=OF_GROUPS)
        for kind, field, count in rows.values_list("kind", "field", "count"):
            found[kind, field] += count
        return found

    def gained_by_groups(self) -> Counter[str]:
        """Returns the views that the categories, the authors and the ages of posts gained in all
        hours, by the kind of the group.
        """
        found: Counter[str] = Counter()
        kinds = [group_sums.kind_of(group, "views") for group in GROUPS]
        rows = BreakdownHistory.objects.filter(kind__in=kinds)
        for kind, count in rows.values_list("kind", "count"):
            found[kind] += count
        return found

    def gained_by_day(self) -> defaultdict[Any, Counter[Name]]:
        """Returns what each post gained on all days, by primary key."""
        found: defaultdict[Any, Counter[Name]] = defaultdict(Counter)
        for subject, kind, field, count in DayBreakdown.objects.values_list(
            "subject", "kind", "field", "count"
        ):
            found[int(subject.partition(":")[2])][kind, field] += count
        return found

    def stored(self) -> defaultdict[Any, Counter[Name]]:
        """Returns the counts in SQL."""
        rows = Post.objects.values_list("pk", "view_count", "visitor_count")
        found = defaultdict(
            Counter, {pk: Counter({VIEWS: views, VISITORS: more}) for pk, views, more in rows}
        )
        for subject, kind, field, count in Breakdown.objects.values_list(
            "subject", "kind", "field", "count"
        ):
            # What was written late of a deleted row is nobody's.
            found.get(int(subject.partition(":")[2]), Counter())[kind, field] = count
        return found
