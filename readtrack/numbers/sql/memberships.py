"""The groups that objects are in: their categories, their author and their age."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from django.db.models import Model

from readtrack import buckets
from readtrack.numbers.published import published_field, time_published
from readtrack.sql import databases
from readtrack.subjects import author_field, news_links, subject_of_row, subjects_by_model

Group = Literal["section", "author", "age"]

GROUPS: Sequence[Group] = ("section", "author", "age")
NONE = ""  # the name of the group of objects without a category, an author or a publication
OTHER = "other"  # the name of the group that has all groups with too long a name
AT_ONCE = 10_000  # objects whose groups are looked up together
LONGEST_NAME = 100  # characters of the name of a group, as BreakdownHistory has it
#: The names of the groups by age, and the day of an object's life on which each group ends. The
#: first day is that of the publication.
AGES: Mapping[str, int] = {"1": 1, "7": 7, "30": 30, "90": 90}
OLDER = "older"  # the name of the group of all older objects


@dataclass(slots=True)
class Membership:
    """The groups of one object."""

    sections: list[str] = field(default_factory=list)  # subjects of its categories
    author: str = NONE  # primary key of the author as text
    published: date | None = None  # the day of TIME_ZONE

    def names(self, group: Group, *, hour: int) -> Sequence[str]:
        """Returns the names of the object's groups of one kind in that hour (since 1970)."""
        if group == "section":
            return self.sections or [NONE]
        if group == "author":
            return [self.author]
        return [self._age(buckets.local_day(hour))]

    def _age(self, day: date) -> str:
        """Returns the name of the group by age that the object is in on that day."""
        if self.published is None:
            return NONE
        day_of_life = (day - self.published).days + 1
        for name, last_day in AGES.items():
            if day_of_life <= last_day:
                return name
        return OLDER


def groups_of(model: type[Model]) -> list[Group]:
    """Returns the kinds of groups that the model's objects can be in."""
    groups: list[Group] = []
    if news_links(model):
        groups.append("section")
    if author_field(model):
        groups.append("author")
    if published_field(model):
        groups.append("age")
    return groups


def of_subjects(
    subjects: Collection[str], *, groups: Collection[Group] = GROUPS
) -> dict[str, Membership]:
    """Returns the groups of these kinds of each of the objects that exist.

    Makes one query for each model that has such groups. Without arrays, it makes one for each
    portion of the objects.
    """
    memberships: dict[str, Membership] = {}
    for model, subjects_by_pk in subjects_by_model(subjects).items():
        groups_of_model = [group for group in groups_of(model) if group in groups]
        if not groups_of_model:
            continue
        by_pk = _of_model(model, [*subjects_by_pk], groups_of_model)
        for pk, membership in by_pk.items():
            if pk in subjects_by_pk:
                memberships[subjects_by_pk[pk]] = membership
    return memberships


def _of_model(
    model: type[Model], pks: Sequence[Any], groups: Collection[Group]
) -> dict[Any, Membership]:
    """Returns the groups of the rows of one model by primary key."""
    fields = _Fields.of(model, groups)
    memberships: defaultdict[Any, Membership] = defaultdict(Membership)
    for rows in databases.with_keys(model, pks):
        for pk, *values in rows.values_list("pk", *fields.columns):
            membership = memberships[bytes(pk) if isinstance(pk, memoryview) else pk]
            fields.fill(membership, values)
    return dict(memberships)


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of a model that tell the groups of its rows. Those that are not asked for are
    left out.
    """

    links: Sequence[Any]  # to categories
    author: Any
    published: Any

    @classmethod
    def of(cls, model: type[Model], groups: Collection[Group]) -> "_Fields":
        return cls(
            links=news_links(model) if "section" in groups else [],
            author=author_field(model) if "author" in groups else None,
            published=published_field(model) if "age" in groups else None,
        )

    @property
    def columns(self) -> list[str]:
        """Returns the names by which a query asks for the values of the fields."""
        # By the key of the category, because a foreign key may have the value of another field. A
        # row comes once for each object that a many-to-many field leads to.
        of_links = [f"{link.name}__pk" for link in self.links]
        of_others = [field.attname for field in (self.author, self.published) if field]
        return [*of_links, *of_others]

    def fill(self, membership: Membership, values: list[Any]) -> None:
        """Adds a row of values of the `columns` to the membership of its object."""
        if self.published:
            membership.published = _day(values.pop())
        if self.author:
            membership.author = _name(values.pop())
        for link, category_pk in zip(self.links, values, strict=True):
            _add_section(membership, link, category_pk)


def _add_section(membership: Membership, link: Any, category_pk: Any) -> None:
    """Adds the category that a link leads to, if it leads to one."""
    if category_pk is None:
        return
    name = _name(subject_of_row(link.related_model, category_pk))
    if name not in membership.sections:
        membership.sections.append(name)


def _name(value: Any) -> str:
    """Returns the value as the name of a group."""
    if value is None:
        return NONE
    name = str(value)
    return name if len(name) <= LONGEST_NAME else OTHER


def _day(value: Any) -> date | None:
    """Returns the day of TIME_ZONE of a value of the field with the time of publication."""
    if not isinstance(value, date):
        return None
    published = time_published(value)
    if published is None:
        return None
    return buckets.local_day(buckets.hour_index(published))
