"""Categories, authors and ages of a scope: their numbers, visitors and names."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from django.contrib.auth import get_user_model

from readtrack import buckets
from readtrack.numbers.data import Counts, Entry, GroupRow
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import group_sums, memberships
from readtrack.numbers.sql.memberships import NONE, OTHER, Group
from readtrack.subjects import NO_VALUE, label_in, label_of, parse_subject
from readtrack.texts import name_of

#: The tables that have a row for each group, and the kinds of their groups.
TABLES: Mapping[str, Group] = {
    "views-by-section": "section",
    "views-by-author": "author",
    "views-by-age": "age",
}
SHOWN = 50  # groups of a kind that the page shows; only these have a number of visitors

Rows = Mapping[Group, Sequence[GroupRow]]  # by kind of group, most views first


def groups_of_tables(tables: Iterable[str]) -> list[Group]:
    """Returns the kinds of groups that the tables show."""
    return [TABLES[table] for table in tables if table in TABLES]


def groups_of(scope: Scope) -> list[Group]:
    """Returns the kinds of groups that the objects of the scope are in, as far as they differ.

    Where filters name the objects, there are no sums of ages. Of all time there are none at all
    then, because to look up where the history of these objects begins would cost a query more.
    """
    groups: list[Group] = []
    if scope.is_listed and scope.is_all_time:
        return groups
    for group in memberships.GROUPS:
        is_known = any(group in memberships.groups_of(model) for model in scope.models)
        chosen_by = "category" if group == "section" else group
        is_one = chosen_by in scope.chosen or (group == "age" and scope.is_listed)
        if is_known and not is_one:
            groups.append(group)
    return groups


def rows_of_models(scope: Scope, labels: Sequence[str], groups: Sequence[Group]) -> Rows:
    """Returns the numbers of the groups of whole models in both periods. Makes one query."""
    if not groups:
        return {}
    hours = scope.span.hours
    if scope.is_all_time:
        hours = range(buckets.hour_index(scope.span.until) + 1)
    spans = [hours, range(0), range(0)]
    if scope.is_compared and scope.compared is not None and scope.before is not None:
        spans = [hours, scope.compared.hours, scope.before.hours]
    gains = group_sums.gains(labels, groups, spans)
    counted = _Counted()
    for part, gains_of_part in zip(PARTS, gains, strict=True):
        for label in labels:
            for name, count in gains_of_part[label].items():
                counted.add(name, count, label=label, part=part)
    return counted.rows(groups)


def rows_of_entries(scope: Scope, entries: Sequence[Entry], groups: Sequence[Group]) -> Rows:
    """Returns the numbers of the groups of these objects, by the groups that they are in now.

    Makes one query for each model that has such groups.
    """
    if not groups:
        return {}
    members = memberships.of_subjects([entry.subject for entry in entries], groups=groups)
    groups_by_label = {
        label_of(model): [group for group in memberships.groups_of(model) if group in groups]
        for model in scope.models
    }
    counted = _Counted()
    for entry in entries:
        member = members.get(entry.subject)
        if member is None:
            continue
        for group in groups_by_label[label_in(entry.subject)]:
            for name in member.names(group, hour=0):
                counted.add_entry(group, name, entry)
    return counted.rows(groups)


Part = Literal["now", "compared", "before"]  # fields of Entry and of GroupRow
PARTS: Sequence[Part] = ("now", "compared", "before")


class _Counted:
    """The numbers of groups while they are added up."""

    def __init__(self) -> None:
        # By the kind and the name of a group; each has the counts by part.
        self._counts: defaultdict[tuple[str, str], dict[Part, Counts]] = defaultdict(dict)
        self._labels: defaultdict[tuple[str, str], list[str]] = defaultdict(list)

    def add(
        self, name: group_sums.Name, count: int, *, label: str = "", part: Part = "now"
    ) -> None:
        """Adds a number of a group. `label` is that of its model."""
        if not count:
            return
        group, number, group_name = name
        counts = self._counts[group, group_name]
        old = counts.get(part, Counts())
        raised = {number: getattr(old, number) + count}
        counts[part] = old._replace(**raised)
        labels = self._labels[group, group_name]
        if label and label not in labels:
            labels.append(label)

    def add_entry(self, group: Group, name: str, entry: Entry) -> None:
        """Adds the numbers of an object to its group called `name`, in both periods."""
        for number in group_sums.NUMBERS:
            for part in PARTS:
                count: int = getattr(getattr(entry, part), number)
                self.add((group, number, name), count, part=part)

    def rows(self, groups: Sequence[Group]) -> Rows:
        """Returns the rows of each kind of groups, most views first."""
        rows: dict[Group, list[GroupRow]] = {group: [] for group in groups}
        for group in groups:
            names = {name for kind, name in self._counts if kind == group}
            for name in names:
                now, compared, before = (
                    self._counts[group, name].get(part, Counts()) for part in PARTS
                )
                row = GroupRow(
                    name=name,
                    now=now,
                    compared=compared,
                    before=before,
                    visitors_of=tuple(
                        group_sums.visitors_of(label, group, name)
                        for label in self._labels[group, name]
                    ),
                )
                rows[group].append(row)
            rows[group].sort(key=lambda row: (-row.now.views, -row.before.views, row.name))
        return rows


def visitors_asked(rows: Rows) -> dict[tuple[str, str], Sequence[str]]:
    """Returns the names that DayVisitors has of the groups whose visitors a table shows."""
    asked: dict[tuple[str, str], Sequence[str]] = {}
    for group in group_sums.WITH_VISITORS:
        for row in rows.get(group, [])[:SHOWN]:
            if row.now.views:
                asked[group, row.name] = row.visitors_of
    return asked


def titles(rows: Rows, *, row_limit: int, known: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Returns the rows of the categories, and the names of the authors, by kind and name.

    Those that are deleted are left out. Makes one query for each model of categories, and one for
    all authors. `row_limit` is 0 for all rows. `known` has the categories that are loaded, by
    subject.
    """
    titles: dict[tuple[str, str], Any] = {}
    limit = SHOWN if row_limit else None
    names = {
        group: [row.name for row in rows.get(group, [])[:limit] if row.name not in (NONE, OTHER)]
        for group in group_sums.WITH_VISITORS
    }
    missing = [subject for subject in names["section"] if subject not in known]
    for subject, category in {**known, **_categories(missing)}.items():
        titles["section", subject] = category
    for pk, author in _authors(names["author"]).items():
        titles["author", pk] = name_of(author)
    return titles


def _categories(subjects: Iterable[str]) -> dict[str, Any]:
    """Returns the rows of categories by subject."""
    pks_by_model: defaultdict[Any, dict[Any, str]] = defaultdict(dict)
    for subject in subjects:
        model_and_pk = parse_subject(subject)
        if model_and_pk:
            model, pk = model_and_pk
            pks_by_model[model][pk] = subject
    rows: dict[str, Any] = {}
    for model, subjects_by_pk in pks_by_model.items():
        for pk, row in model._default_manager.in_bulk([*subjects_by_pk]).items():
            rows[subjects_by_pk[pk]] = row
    return rows


def _authors(pks: Iterable[str]) -> dict[str, Any]:
    """Returns the accounts of authors by primary key as text."""
    model = get_user_model()
    keys = []
    for pk in pks:
        try:
            keys.append(model._meta.pk.to_python(pk))
        except NO_VALUE:
            continue
    if not keys:
        return {}
    return {str(pk): author for pk, author in model._default_manager.in_bulk(keys).items()}
