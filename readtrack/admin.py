"""The admin: the records of flushes, what they have stored, who has read what, and a mixin for the
site's own `PostAdmin`.

Django imports the admin into every web worker. So what a page or an action needs beyond that is
imported when somebody opens the page or takes the action.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import django
from django.apps.registry import Apps
from django.contrib import admin, messages
from django.contrib.admin import helpers, utils
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.template.loader import select_template
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.formats import date_format, number_format
from django.utils.html import format_html
from django.utils.timezone import template_localtime  # type: ignore[attr-defined]
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from readtrack import parts
from readtrack.access import counts_url, may_view_numbers, numbers_url
from readtrack.models import FlushRun, Tracked
from readtrack.numerals import exact
from readtrack.subjects import counted_subject_of, has_read_state, is_counted, news_links
from readtrack.texts import title_of

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
    """Changes the rows in the order of their keys, and logs it. Raises RedisError."""
    from readtrack.sql import databases

    for batch in databases.in_portions(rows, "pk", SLICE):
        change(batch)
        LogEntry.objects.log_actions(user.pk, batch, CHANGE, title)


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
        """Makes the counts in the form read-only, and adds the actions of readtrack."""
        super().__init__(*args, **kwargs)
        form_fields = utils.flatten(self.fields or ())
        if self.fieldsets:
            form_fields = utils.flatten_fieldsets(self.fieldsets)
        counts_in_form = {"view_count", "visitor_count"}.intersection(form_fields)
        editable_counts = counts_in_form.difference(self.readonly_fields)
        # A ClassVar in the stubs.
        self.readonly_fields = [*self.readonly_fields, *editable_counts]  # type: ignore[misc]
        if self.actions is not None:
            actions = self._actions_of_model()
            new_actions = [action for action in actions if action not in self.actions]
            self.actions = [*self.actions, *new_actions]

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
        """Returns the views of the last flush, with a link to the page with the object's numbers;
        in an admin without such a page, to that with the counts of its model.
        """
        views = exact(obj.view_count)
        site = self.admin_site.name
        url = numbers_url(obj, site=site) or counts_url(obj.__class__, site=site)
        if not url:
            return views
        return format_html('<a href="{}">{}</a>', url, views)

    def get_list_display(self, request: HttpRequest) -> Any:
        """Returns the columns, with the views behind those of the site."""
        columns = super().get_list_display(request)
        if not issubclass(self.model, Tracked):
            return [*columns]
        if may_view_numbers(request.user):
            return [*columns, "linked_views"]
        return [*columns, "stored_views"]

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Adds the links of parts to pages about the object.

        `numbers_form.html` shows them. That template extends the one that Django would take for the
        model.
        """
        app_label = self.opts.app_label
        folders = (f"{app_label}/{self.opts.model_name}/", f"{app_label}/", "")
        context["readtrack_base"] = select_template(
            [f"admin/{folder}change_form.html" for folder in folders]
        )
        obj = kwargs.get("obj")
        links: list[parts.FormLink] = []
        if obj is not None:
            for part in parts.installed():
                links += part.form_links(obj, request.user, site=self.admin_site.name)
        context["links_of_parts"] = [link for link in links if link.url]
        return super().render_change_form(request, context, *args, **kwargs)


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The admin of a model whose rows only readtrack writes."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_add_permission = has_delete_permission = has_change_permission


def form_url(obj: Model, *, admin_site: admin.AdminSite, request: HttpRequest) -> str:
    """Returns the address of the object's form; "" for a user who may not see the form, and for an
    object that has none in this admin site.
    """
    if not admin_site.is_registered(obj.__class__):
        return ""
    model_admin = admin_site.get_model_admin(obj.__class__)
    if not model_admin.has_view_or_change_permission(request, obj):
        return ""
    view_name = f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change"
    return reverse(view_name, args=[utils.quote(obj.pk)], current_app=admin_site.name)


class AdminEntry(models.Model):
    """The base of an entry in the admin's list of apps, beside the flushes, that is no table.

    It has no rows. Its registry of models is another one than Django's, so that it needs no
    migration.
    """

    class Meta:
        abstract = True
        apps = Apps()
        app_label = "readtrack"
        managed = False
        default_permissions = ()


class ViewCounts(AdminEntry):  # noqa: DJ008
    """The page of stored counts."""

    class Meta(AdminEntry.Meta):
        verbose_name = _("view counts")
        verbose_name_plural = _("view counts")


@admin.register(ViewCounts)
class ViewCountsAdmin(ReadOnlyAdmin):
    """The page of stored counts. It takes the place of the list of rows, because its model has
    none.

    Where a part has pages with the numbers of the site, the page is not in the list of apps.
    """

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_view_numbers(request.user)

    def has_module_permission(self, request: HttpRequest) -> bool:
        is_shown_elsewhere = any(part.shows_numbers for part in parts.installed())
        return self.has_view_permission(request) and not is_shown_elsewhere

    def get_urls(self) -> list[Any]:
        page = self.admin_site.admin_view(self.changelist_view)
        return [path("", page, name="readtrack_viewcounts_changelist")]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Returns the page. Raises PermissionDenied for a user who may not see all numbers."""
        from readtrack import view_counts

        if not self.has_view_permission(request):
            raise PermissionDenied
        request.current_app = self.admin_site.name  # for the template's addresses, too
        form_url_here = partial(form_url, admin_site=self.admin_site, request=request)
        context = {
            **self.admin_site.each_context(request),
            "has_breadcrumb_list": django.VERSION >= (6, 1),
            "title": gettext("View counts"),
            **view_counts.page_context(form_url_here),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/readtrack/view_counts.html", context)


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
