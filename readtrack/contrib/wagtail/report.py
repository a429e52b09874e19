"""The report "Page views" in Wagtail's admin."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db.models import BigIntegerField, CharField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Cast, Coalesce, Concat
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from django_filters import ModelChoiceFilter
from wagtail.admin.filters import ContentTypeFilter, WagtailFilterSet
from wagtail.admin.ui.tables import Column, LocaleColumn, TitleColumn
from wagtail.admin.views.reports import ReportView
from wagtail.coreutils import get_content_type_label
from wagtail.models import Locale, Site
from wagtail.permission_policies.pages import PagePermissionPolicy

from readtrack import numerals, reports
from readtrack.contrib.wagtail.access import may_view_numbers, numbers_url
from readtrack.contrib.wagtail.models_of_site import base_model, counted_page_models
from readtrack.models import SubjectCount, Tracked
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers import tables
from readtrack.numbers.causes import Grown, grown_and_why
from readtrack.numbers.cells import no_formula
from readtrack.numbers.changes import signed
from readtrack.numbers.comparison import part_compared
from readtrack.numbers.loading import load
from readtrack.numbers.scope import PERIODS, Scope
from readtrack.numbers.totals import totals
from readtrack.numbers.verdict import verdict_of
from readtrack.numbers.words import Lead, lead, shortened
from readtrack.numbers.words_of_causes import sentences_of_cause
from readtrack.sql import databases
from readtrack.store import scripts
from readtrack.subjects import label_of, owner
from readtrack.texts import line_of

DAYS = 7  # of the column with the last views
GROWN = 3  # pages of which the report says why they grew


def counted_types() -> "QuerySet[ContentType]":
    """Returns the content types of the page models that are counted."""
    types = ContentType.objects.get_for_models(*counted_page_models()).values()
    return ContentType.objects.filter(pk__in=[content_type.pk for content_type in types])


def explorable(pages: "QuerySet[Any]", user: Any) -> "QuerySet[Any]":
    """Returns those of the pages that the user finds in Wagtail's explorer.

    Titles of drafts and of private pages are for these users only.
    """
    found = PagePermissionPolicy().explorable_instances(user)
    return pages.filter(pk__in=found.order_by().values("pk"))


def sections(user: Any) -> "QuerySet[Any]":
    """Returns the pages right below the sites' home pages that have pages below them, and that the
    user may explore.
    """
    home_pages = [site.root_page for site in Site.objects.select_related("root_page")]
    children = base_model().objects.none()
    for home_page in home_pages:
        children |= base_model().objects.child_of(home_page)
    with_pages_below: QuerySet[Any] = children.filter(numchild__gt=0)
    return explorable(with_pages_below, user).order_by("title")


class SectionFilter(ModelChoiceFilter):  # type: ignore[misc]  # the package has no types
    """Leaves the section and the pages below it."""

    def filter(self, qs: Any, value: Any) -> Any:
        return qs.descendant_of(value, inclusive=True) if value else qs


class PageViewsFilterSet(WagtailFilterSet):  # type: ignore[misc]  # Wagtail has no types
    """The filters of the report."""

    content_type = ContentTypeFilter(label=_("Type"), queryset=lambda request: counted_types())
    section = SectionFilter(label=_("Section"), queryset=lambda request: sections(request.user))
    locale = ModelChoiceFilter(label=_("Language"), queryset=lambda request: Locale.objects.all())

    class Meta:
        model = base_model()
        fields = ["content_type", "section", "locale"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if Locale.objects.count() < 2:
            del self.filters["locale"]


def stored_count(name: str) -> Coalesce:
    """Returns the expression for a count that SQL stores of a page, `view_count` or
    `visitor_count`, wherever its model has it.
    """
    owners = {owner(model): None for model in counted_page_models()}
    counts: list[Any] = []
    for model in owners:
        if issubclass(model, Tracked):
            rows: Any = QuerySet(model).filter(pk=OuterRef("pk"))
        elif databases.of(SubjectCount) != databases.of(base_model()):
            continue  # no query reads two databases, so these pages are sorted as if they had none
        else:
            key = Concat(Value(f"{label_of(model)}:"), Cast(OuterRef("pk"), CharField()))
            rows = SubjectCount.objects.filter(subject=key)
        counts.append(Subquery(rows.values(name)[:1]))
    return Coalesce(*counts, Value(0), Value(0), output_field=BigIntegerField())


def with_numbers(pages: Iterable[Any]) -> list[Any]:
    """Returns the pages with `live_views`, `live_visitors` and `last_views`, the views of the last
    days.

    Takes the same number of queries for up to 1,000 pages.
    """
    page_list = list(pages)
    specific_pages = [page.specific_deferred for page in page_list]
    views = reports.views(specific_pages)
    visitors = reports.visitors(specific_pages)
    last_views = numbers_reports.views_in(specific_pages, days=DAYS)
    for page, specific_page in zip(page_list, specific_pages, strict=True):
        page.live_views = views[specific_page]
        # A sketch is not exact, so it may be higher than the views.
        page.live_visitors = min(page.live_views, visitors[specific_page])
        page.last_views = last_views[specific_page]
    return page_list


class GrownPage(NamedTuple):
    """What the report says of a page that grew."""

    title: str
    growth: str
    why: str  # "" if that is not known


class Overview(NamedTuple):
    """What the dashboard says of the last days of the site, in the active language."""

    period: str
    lead: Lead
    figures: Sequence[tuple[str, str]]  # headings and numbers
    grown: Sequence[GrownPage]
    part: str  # of the period, which is compared; "" if it is all of it


def overview_for(user: Any) -> Overview:
    """Returns the sentence and the totals of the dashboard, for a user who may see all numbers.

    A page that the user may not explore is not named.
    """
    tables_of_both = ["over-time", "most-viewed", "grew-most"]
    data = load(Scope.parse({}), tables_of_both, sees_all=False, row_limit=GROWN)
    verdict = verdict_of(data)
    grown = grown_and_why(data, most=GROWN)
    named = [one.obj for one in grown]
    if verdict.story is not None:
        named.append(verdict.story.obj)
    hidden = _not_explorable(user, named)
    if verdict.story is not None and verdict.story.obj in hidden:
        verdict = replace(verdict, story=None)
    figures = []
    if data.chart is not None:
        for total in totals(data, data.chart):
            if total.now is not None:
                heading = str(tables.COLUMNS[total.name].heading)
                figures.append((heading, numerals.exact(total.now)))
    return Overview(
        period=str(PERIODS[data.asked.period]),
        lead=lead(verdict),
        figures=figures,
        grown=[_grown_page(one) for one in grown if one.obj not in hidden],
        part=part_compared(data),
    )


def _grown_page(grown: Grown) -> GrownPage:
    """Returns what is said of a page that grew, in the words of the dashboard and of digests."""
    return GrownPage(
        title=shortened(line_of(grown.obj)),
        growth=signed(grown.growth),
        why=" ".join(sentences_of_cause(grown.cause)),
    )


def _not_explorable(user: Any, objs: Sequence[Any]) -> list[Any]:
    """Returns those of the objects that are pages which the user does not find in Wagtail's
    explorer.
    """
    pages = [obj for obj in objs if isinstance(obj, base_model())]
    if not pages:
        return []
    among = base_model().objects.filter(pk__in=[page.pk for page in pages])
    found = {*explorable(among, user).values_list("pk", flat=True)}
    return [page for page in pages if page.pk not in found]


def _edit_url(page: Any) -> str:
    """Returns the URL of the page's form in Wagtail's admin."""
    return reverse("wagtailadmin_pages:edit", args=[page.pk])


class CountColumn(Column):  # type: ignore[misc]  # Wagtail has no types
    """A number, with the separators of the user's language."""

    def get_value(self, instance: Any) -> str:
        return numerals.exact(super().get_value(instance))


class NumbersColumn(Column):  # type: ignore[misc]  # Wagtail has no types
    """A link to the dashboard's page about the page, for those who can open it."""

    cell_template_name = "readtrack/wagtail/numbers_cell.html"

    def get_cell_context_data(self, instance: Any, parent_context: Any) -> Any:
        context = super().get_cell_context_data(instance, parent_context)
        user = parent_context["request"].user
        return {**context, "url": numbers_url(user, instance.specific_deferred)}


class PageViewsView(ReportView):  # type: ignore[misc]
    """Lists the pages that are counted, those with the most views first."""

    page_title = _("Page views")
    template_name = "readtrack/wagtail/report.html"
    header_icon = "view"
    filterset_class = PageViewsFilterSet
    index_url_name = "readtrack_page_views"
    index_results_url_name = "readtrack_page_views_results"
    default_ordering = "-stored_views"
    is_searchable = True
    search_fields = ["title"]
    search_backend_name = None  # Wagtail's search would not keep the order
    all_columns = [
        TitleColumn("title", label=_("Title"), get_url=_edit_url, sort_key="title"),
        Column("type", label=_("Type"), accessor="page_type_display_name"),
        LocaleColumn(label=_("Language")),
        CountColumn("live_views", label=_("Views"), sort_key="stored_views"),
        CountColumn("live_visitors", label=_("Visitors"), sort_key="stored_visitors"),
        CountColumn("last_views", label=_("Views in 7 days")),
        NumbersColumn("numbers", label=""),
    ]

    @cached_property
    def columns(self) -> list[Any]:
        """The columns of the table, without languages in a site that has one."""
        if Locale.objects.count() > 1:
            return self.all_columns
        return [column for column in self.all_columns if not isinstance(column, LocaleColumn)]

    list_export = [
        "pk",
        "title",
        "full_url",
        "content_type",
        "locale",
        "live",
        "first_published_at",
        "live_views",
        "live_visitors",
        "last_views",
    ]
    export_headings = {
        "pk": "ID",
        "title": _("Title"),
        "full_url": "URL",
        "content_type": _("Type"),
        "locale": _("Language"),
        "live": _("Live"),
        "first_published_at": _("Published"),
        "live_views": _("Views"),
        "live_visitors": _("Visitors"),
        "last_views": _("Views in 7 days"),
    }
    export_filename = "page-views"
    custom_field_preprocess = {
        "content_type": dict.fromkeys(ReportView.FORMATS, get_content_type_label),
        "locale": dict.fromkeys(ReportView.FORMATS, str),
        "full_url": dict.fromkeys(ReportView.FORMATS, lambda url: url or ""),
        "title": dict.fromkeys(ReportView.FORMATS, no_formula),
    }

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not may_view_numbers(request.user):
            raise PermissionDenied
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return response

    def get_context_data(self, *args: Any, **kwargs: Any) -> Any:
        context = super().get_context_data(*args, **kwargs)
        if not (self.is_export or self.results_only):
            context["overview"] = overview_for(self.request.user)
        return context

    def get_base_queryset(self) -> Any:
        types = ContentType.objects.get_for_models(*counted_page_models()).values()
        pages = base_model().objects.filter(content_type__in=types, depth__gt=1)
        pages = explorable(pages, self.request.user)
        return pages.select_related("locale").annotate(
            stored_views=stored_count("view_count"), stored_visitors=stored_count("visitor_count")
        )

    def order_queryset(self, queryset: Any) -> Any:
        return queryset.order_by(self.ordering, "pk")

    def get_filtered_queryset(self) -> Any:
        return self.get_queryset()  # which has filtered it

    def decorate_paginated_queryset(self, object_list: Any) -> Any:
        if self.is_export:
            return self._all_with_numbers(object_list)
        with_numbers(object_list)
        return object_list

    def _all_with_numbers(self, pages: Any) -> Iterator[Any]:
        """Yields all pages with their numbers, without all of them in memory at once."""
        pages_at_once: list[Any] = []
        for page in pages.iterator(chunk_size=scripts.SLICE):
            pages_at_once.append(page)
            if len(pages_at_once) == scripts.SLICE:
                yield from with_numbers(pages_at_once)
                pages_at_once = []
        yield from with_numbers(pages_at_once)
