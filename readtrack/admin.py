"""The admin: a dashboard, the records of flushes, and a mixin for the site's own `PostAdmin`.

Django imports the admin into every web worker. So what a page or an action needs beyond that is
imported when somebody opens the page or takes the action.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import django
from django.contrib import admin, messages
from django.contrib.admin import helpers, utils
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import select_template
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.formats import date_format, number_format
from django.utils.html import format_html
from django.utils.timezone import template_localtime  # type: ignore[attr-defined]
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from readtrack import parts
from readtrack.access import (
    may_view_numbers,
    may_view_readers,
    may_view_report_of,
    numbers_url,
    readers_url,
)
from readtrack.models import Dashboard, FlushRun, Note, Tracked
from readtrack.numerals import exact
from readtrack.published import published_at
from readtrack.subjects import (
    author_of,
    counted_subject_of,
    has_read_state,
    is_counted,
    news_links,
)
from readtrack.texts import address_of, name_of, title_of

if TYPE_CHECKING:
    from readtrack.numbers.scope import Scope

SLICE = 500  # rows that an action changes at a time, because there may be millions


def may_reset_counts(user: Any) -> bool:
    """Returns True if the user may set counts to zero. The row has to be one to change, too."""
    return bool(user.has_perm("readtrack.reset_counts"))


def _is_allowed_to_all(user: Any) -> bool:
    return True


def _action(
    name: str,
    description: Any,
    *,
    loss: Any,
    change: Callable[[Any], object],
    is_allowed: Callable[[Any], bool] = _is_allowed_to_all,
) -> Any:
    """Returns an admin action that first shows what is lost, and waits for a confirmation.

    `loss` is the text about that, `change` the function that changes a list of rows. The action is
    for users who may change the rows and for whom `is_allowed` returns True.
    """

    @admin.action(permissions=["change"], description=description)
    def act(
        modeladmin: Any, request: HttpRequest, queryset: QuerySet[Any]
    ) -> TemplateResponse | None:
        # Checked here, because Django wants one of the permissions of an action, and this needs
        # two.
        if not is_allowed(request.user):
            raise PermissionDenied
        title = description % utils.model_format_dict(queryset)
        rows = queryset.order_by("pk")
        if "confirmed" not in request.POST:
            context = {
                **modeladmin.admin_site.each_context(request),
                "title": title,
                "loss": loss,
                "rows": [title_of(row) for row in rows[:10]],
                "count": rows.count(),
                "action": name,
                "is_all": request.POST.get("select_across", "0"),
                "selected": request.POST.getlist(helpers.ACTION_CHECKBOX_NAME),
            }
            return TemplateResponse(request, "admin/readtrack/confirm.html", context)
        from readtrack.store.connection import RedisError

        try:
            _change_all(rows, change, user=request.user, title=title)
        except RedisError:
            message = gettext(
                "Redis does not answer, so not all of it is done. Please do it again."
            )
            modeladmin.message_user(request, message, messages.ERROR)
            return None
        done = gettext("Done: %(title)s.") % {"title": title}
        modeladmin.message_user(request, done, messages.SUCCESS)
        return None

    act.__name__ = name  # the form has it as the value of the action
    return act


def _change_all(
    rows: QuerySet[Any], change: Callable[[Any], object], *, user: Any, title: str
) -> None:
    """Changes the rows in the order of their keys, and logs the change by the user.

    `rows` are ordered by their keys. Raises RedisError.
    """
    batch = [*rows[:SLICE]]
    while batch:
        change(batch)
        LogEntry.objects.log_actions(user.pk, batch, CHANGE, title)
        batch = [*rows.filter(pk__gt=batch[-1].pk)[:SLICE]]


def _reset(rows: list[Any]) -> None:
    from readtrack.flush import resets

    resets.reset([counted_subject_of(row) for row in rows])


def _mark_unread(rows: list[Any]) -> None:
    from readtrack import tracker

    tracker.mark_unread(rows)


def _publish(rows: list[Any]) -> None:
    from readtrack import tracker

    tracker.publish(rows)


reset_counts = _action(
    "reset_counts",
    _("Reset the counts of selected %(verbose_name_plural)s"),
    loss=_(
        "Views, visitors, reads and their history are deleted, in Redis and in the database, and "
        "begin at 0."
    ),
    change=_reset,
    is_allowed=may_reset_counts,
)
mark_unread = _action(
    "mark_unread",
    _("Mark selected %(verbose_name_plural)s unread for everybody"),
    loss=_("It is forgotten who has read them: everybody gets a dot."),
    change=_mark_unread,
)
publish_again = _action(
    "publish_again",
    _("Publish selected %(verbose_name_plural)s again"),
    loss=_(
        "It is forgotten who has read what they are new in, such as their category: everybody gets "
        "a dot there."
    ),
    change=_publish,
)


class TrackedAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Base or mixin for a site's own admin, as in `class PostAdmin(TrackedAdmin)`.

    It adds a sortable column of views. Counts in `fields` or `fieldsets` are shown, and cannot be
    edited. Unless `actions` is None, it adds the action `reset_counts`, and `mark_unread` and
    `publish_again` for models that they apply to.
    """

    change_form_template = "admin/readtrack/numbers_form.html"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        form_fields = utils.flatten(self.fields or ())
        if self.fieldsets:
            form_fields = utils.flatten_fieldsets(self.fieldsets)
        counts = {"view_count", "visitor_count"}.intersection(form_fields)
        editable_counts = counts.difference(self.readonly_fields)
        # A ClassVar in the stubs.
        self.readonly_fields = [*self.readonly_fields, *editable_counts]  # type: ignore[misc]
        if self.actions is not None:
            added = [action for action in self._actions_of_model() if action not in self.actions]
            self.actions = [*self.actions, *added]

    def _actions_of_model(self) -> list[Any]:
        """Returns the actions of readtrack that apply to the model."""
        actions = []
        if is_counted(self.model):
            actions.append(reset_counts)
        if has_read_state(self.model):
            actions.append(mark_unread)
        if news_links(self.model):
            actions.append(publish_again)
        return actions

    def get_actions(self, request: HttpRequest, action_location: Any = None) -> Any:
        """Returns the actions, without `reset_counts` if the user lacks the permission.

        Django 6.1 and later say where in a page the actions are to be shown.
        """
        options: dict[str, Any] = {}
        if action_location is not None:
            options["action_location"] = action_location
        actions = super().get_actions(request, **options)
        if not may_reset_counts(request.user):
            actions.pop(reset_counts.__name__, None)
        return actions

    @admin.display(description=_("views"), ordering="view_count")
    def stored_views(self, obj: Tracked) -> str:
        """Returns the views of the last flush."""
        return exact(obj.view_count)

    @admin.display(description=_("views"), ordering="view_count")
    def linked_views(self, obj: Tracked) -> str:
        """Returns the views of the last flush, with a link to the object's numbers."""
        return format_html(
            '<a href="{}">{}</a>',
            numbers_url(obj, site=self.admin_site.name),
            exact(obj.view_count),
        )

    def get_list_display(self, request: HttpRequest) -> Any:
        columns = super().get_list_display(request)
        if not issubclass(self.model, Tracked):
            return [*columns]
        views_column = "linked_views" if may_view_numbers(request.user) else "stored_views"
        return [*columns, views_column]

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Adds the links to the object's numbers and to who has read it.

        `numbers_form.html` shows them. That template extends the one that Django would take for the
        model.
        """
        app_label = self.opts.app_label
        folders = (f"{app_label}/{self.opts.model_name}/", f"{app_label}/", "")
        context["readtrack_base"] = select_template(
            [f"admin/{folder}change_form.html" for folder in folders]
        )
        obj = kwargs.get("obj")
        context["numbers_url"] = ""
        if obj is not None and is_counted(self.model) and may_view_numbers(request.user, obj):
            context["numbers_url"] = numbers_url(obj, site=self.admin_site.name)
        context["readers_url"] = ""
        if obj is not None and has_read_state(self.model) and may_view_readers(request.user):
            context["readers_url"] = readers_url(obj, site=self.admin_site.name)
        return super().render_change_form(request, context, *args, **kwargs)


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The admin of a model whose rows only readtrack writes."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_add_permission = has_delete_permission = has_change_permission


@admin.register(Note)
class NoteAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The notes on the charts."""

    list_display = ("day", "text")
    date_hierarchy = "day"


@admin.register(FlushRun)
class FlushRunAdmin(ReadOnlyAdmin):
    """The records of flushes, newest first."""

    list_display = (
        "began",
        "kind",
        "time_taken",
        "read",
        "written",
        "settled",
        "lifted",
        "orphans",
        "locked",
        "failed",
        "faults",
        "error",
    )

    @admin.display(description=_("started"), ordering="started")
    def began(self, run: FlushRun) -> str:
        """Returns the start with seconds, because flushes of one minute differ by them only."""
        started = template_localtime(run.started)
        return f"{date_format(started, 'DATE_FORMAT')}, {date_format(started, 'H:i:s')}"

    @admin.display(description=_("took"))
    def time_taken(self, run: FlushRun) -> str | None:
        """Returns the time in seconds; None for a flush that has not ended."""
        if run.took is None:
            return None
        seconds = number_format(round(run.took.total_seconds(), 2), decimal_pos=2)
        text = gettext("%(seconds)s s") % {"seconds": seconds}
        return text.replace(" ", "\N{NO-BREAK SPACE}")


@admin.register(Dashboard)
class DashboardAdmin(ReadOnlyAdmin):
    """The dashboard. It takes the place of the list of rows, because its model has no rows."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_view_numbers(request.user)

    has_module_permission = has_view_permission

    def get_urls(self) -> list[Any]:
        object_view = self.admin_site.admin_view(self.object_view)
        author_view = self.admin_site.admin_view(self.author_view)
        readers_view = self.admin_site.admin_view(self.readers_view)
        return [
            path("readers/<str:subject>/", readers_view, name="readtrack_readers"),
            path("object/<str:subject>/", object_view, name="readtrack_object"),
            path("author/", author_view, name="readtrack_author"),
            *(
                pattern
                for part in parts.installed()
                for pattern in part.admin_urls(self.admin_site)
            ),
            *super().get_urls(),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Returns the dashboard of the whole site, or redirects to the page of a chosen object."""
        from readtrack.numbers.scope import Scope

        subject = Scope.parse(request.GET).chosen.get("object", "")
        if subject and self.has_view_permission(request):
            parameters = request.GET.copy()
            del parameters["object"]
            return redirect(f"{self._url('readtrack_object', subject)}?{parameters.urlencode()}")
        context = {
            "title": gettext("Dashboard"),
            "links": self._links_of_parts(),
            **(extra_context or {}),
        }
        return self._page(request, {}, may_see=False, **context)

    def object_view(self, request: HttpRequest, subject: str) -> Any:
        """Returns the dashboard of one object, with links to its page and to its author's report.

        `subject` comes from the address, so it may be invalid. Raises Http404 then, or
        PermissionDenied for a user who may not see all numbers.
        """
        from readtrack.numbers.objects import with_links
        from readtrack.numbers.scope import Scope

        scope = Scope.parse({"object": subject})
        valid_subject = scope.chosen.get("object", "")
        obj = None
        if valid_subject:
            obj = with_links(scope.rows(scope.models[0])).first()
        may_see = obj is not None and may_view_numbers(request.user, obj)
        if not (may_see or self.has_view_permission(request)):
            raise PermissionDenied  # not Http404, which would tell whether the object exists
        if obj is None:
            raise Http404
        fixed = {"object": valid_subject}
        scope_of_page = Scope.parse(request.GET, fixed=fixed, published=published_at(obj))
        links = [
            (gettext("View on site"), address_of(obj)),
            (gettext("All by this author"), self._author_numbers_url(request, obj, scope_of_page)),
        ]
        return self._page(
            request,
            fixed,
            may_see=may_see,
            obj=obj,
            title=title_of(obj),
            links=[(label, url) for label, url in links if url],
        )

    def _author_numbers_url(self, request: HttpRequest, obj: Model, scope: "Scope") -> str:
        """Returns the address of the page with the numbers of all that the object's author wrote.

        Staff get the dashboard filtered by the author, in the period and with the filter of the
        scope. The author gets the page of their own numbers. For anybody else it is "".
        """
        author = author_of(obj, of_counts=True)
        if author and self.has_view_permission(request):
            address = scope.address_of_many(author=author)
            return self._url("readtrack_dashboard_changelist") + address
        if may_view_report_of(request.user, author):
            return self._url("readtrack_author") + scope.address_of_many()
        return ""

    def _url(self, view_name: str, *args: str) -> str:
        return reverse(f"admin:{view_name}", args=args, current_app=self.admin_site.name)

    def author_view(self, request: HttpRequest) -> Any:
        """Returns the dashboard of what the user has written.

        Whether the user may see it is decided by `readtrack.access`.
        """
        title = gettext("Numbers of %(author)s") % {"author": name_of(request.user)}
        author = str(request.user.pk)
        may_see = may_view_report_of(request.user, author)
        return self._page(
            request,
            {"author": author},
            may_see=may_see,
            title=title,
            links=self._links_of_parts(),
        )

    def readers_view(self, request: HttpRequest, subject: str) -> HttpResponseBase:
        """Returns the page that says which users have read an object.

        `subject` comes from the address, so it may be invalid. Raises Http404 then, and for an
        object without read state; PermissionDenied for a user without the permission.
        """
        from readtrack.dashboard import audience

        if not may_view_readers(request.user):
            raise PermissionDenied  # not Http404, which would tell whether the object exists
        category = audience.category_with(subject)
        if category is None:
            raise Http404
        request.current_app = self.admin_site.name  # for the template's addresses, too
        context = {
            **self.admin_site.each_context(request),
            "has_breadcrumb_list": django.VERSION >= (6, 1),
            "title": gettext("Who has read it"),
            "subtitle": title_of(category),
            "form_url": self._form_url(request, category),
            **audience.page_context(category, request.GET),
        }
        return TemplateResponse(request, "admin/readtrack/readers.html", context)

    def _form_url(self, request: HttpRequest, obj: Model) -> str:
        """Returns the address of the object's form; "" for a user who may not see the form, and for
        an object that has none in this admin site.
        """
        if not self.admin_site.is_registered(obj.__class__):
            return ""
        model_admin = self.admin_site.get_model_admin(obj.__class__)
        if not model_admin.has_view_or_change_permission(request, obj):
            return ""
        view_name = f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change"
        return reverse(view_name, args=[utils.quote(obj.pk)], current_app=self.admin_site.name)

    def _links_of_parts(self) -> list[tuple[str, str]]:
        """Returns the links that parts add: their labels and addresses."""
        links = [link for part in parts.installed() for link in part.admin_links()]
        return [(str(link.label), self._url(link.url_name)) for link in links]

    def _page(
        self,
        request: HttpRequest,
        fixed: dict[str, str],
        *,
        may_see: bool,
        obj: Model | None = None,
        **context: Any,
    ) -> HttpResponseBase:
        """Returns the page of the scope in the address, or one of its tables as a file.

        `fixed` are the filters that the page sets by itself, such as `{"object": "blog.post:42"}`.
        With `may_see` the user may see the page. Otherwise it is for users who may see all numbers:
        raises PermissionDenied for other users.
        """
        from readtrack.dashboard.exports import export
        from readtrack.dashboard.page import FILES, page_context
        from readtrack.numbers.scope import Scope

        sees_all = self.has_view_permission(request)
        if not (sees_all or may_see):
            raise PermissionDenied
        published = published_at(obj) if obj else None
        scope = Scope.parse(request.GET, fixed=fixed, published=published)
        options = {"has_notes": sees_all, "obj": obj}
        file_format = request.GET.get("format")
        if file_format in FILES:
            return export(scope, request.GET.get("table", ""), file_format, **options)
        site = self.admin_site.name
        request.current_app = site  # for the template's addresses, too
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "has_breadcrumb_list": django.VERSION >= (6, 1),
            "sees_all": sees_all,
            **context,
            **page_context(
                scope,
                request.GET.get("tab", ""),
                series=request.GET.get("series", ""),
                site=site,
                **options,
            ),
        }
        return TemplateResponse(request, "admin/readtrack/dashboard.html", context)
