"""Parts: apps beside the core, of which a site adds those that it wants to INSTALLED_APPS.

A part is an app whose configuration extends `PartConfig`. The core asks each installed part for
what it adds, and names none of them, so a part that is not installed costs nothing. Models,
migrations, templates and pages of the admin come by INSTALLED_APPS, as those of any app.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage
from django.core.exceptions import ImproperlyConfigured

from readtrack import shipped
from readtrack.conf import cached_setting

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.db.models import Model
    from django.http import HttpRequest
    from django.template import Library
    from django.urls import URLPattern

    from readtrack.flush.steps import Steps
    from readtrack.hits.hit import Hit
    from readtrack.management.subcommands.base import Line, Subcommand
    from readtrack.page.reporting import Reporting
    from readtrack.sql.row_counts import RowCounts
    from readtrack.store.counters import Stored
    from readtrack.store.keys import Key
    from readtrack.store.read_state.forms import Form
    from readtrack.store.read_state.of_parts import KeysOfPart
    from readtrack.store.scripts import Call
    from readtrack.store.sending import Sending

Check = Callable[[], Sequence[CheckMessage]]


class Job(NamedTuple):
    """Work that has to run by a schedule."""

    name: str  # such as "digest"; unique among all jobs
    # Seconds between two runs, which may be days. Where Redis was lost, or is gone, it runs
    # earlier.
    interval: float
    run: Callable[[], object]


class AdminLink(NamedTuple):
    """A link on the dashboard to a page of a part."""

    label: Any  # a text, which may be a lazy translation
    url_name: str  # of a pattern of `PartConfig.admin_urls`, or of another page of the admin
    is_of_site: bool = False  # for those only who may see the numbers of the whole site
    is_state: bool = False  # the label tells a state, so it is read without opening a menu


class FormLink(NamedTuple):
    """A link on the form of an object in the admin."""

    label: str
    url: str  # "" for none


class CountingNeeds(NamedTuple):
    """What a part needs in the script that counts a view.

    The file `lua/counted.lua` in the part's folder has the Lua that each counted view runs, and
    `lua/effects.lua` the functions of `PartConfig.effects`. `lua/seen.lua` is run by the view of a
    page that was seen, also if the view is a repeat. They know the constants by their names, and
    the first and the last one know the keys by their names, too. `lua/functions.lua` has what they
    call.
    """

    # Rows of the table of keys, for keys of the view's subject or of its model. They may have the
    # hour, the minute and the date of the view in their name.
    keys: "Mapping[str, Key]" = {}
    # Rows for keys of the view's subject that only the views of seen pages need.
    keys_if_seen: "Mapping[str, Key]" = {}
    # Tells by the name of a key and the label of a model if views of the model need it. If not, the
    # key of the total is in its place. Only for keys with the subject in their name.
    needs: Callable[[str, str], bool] = lambda name, label: True
    constants: Mapping[str, int] = {}  # such as lifetimes


class Division(NamedTuple):
    """Into what a part divides the keys and the flush. The defaults divide nothing."""

    partitions: int = 1  # groups of keys, each with a hash tag of its own if there are several
    flush_tasks: int = 1  # tasks that a flush by the schedule is divided into
    # Path of the `store.servers.ServersFactory` that makes the client of a cluster; "" for none.
    factory: str = ""
    # Path of the module that moves keys of renamed models to other partitions: its functions are
    # `finish` and `move`. "" for one partition.
    renaming: str = ""
    # True while this process names keys by an earlier number of partitions, before it moves them.
    is_earlier: bool = False


class Effect(NamedTuple):
    """What one counted view does that others do not, by a function in Lua.

    The function `effects.NAME(first_key, argument, last_key)` gets the numbers of its keys in KEYS.
    """

    name: str
    # What the names of its keys begin with, as `Key.start` returns it. The subject is behind each,
    # so that equal effects of all subjects are computed once.
    key_starts: tuple[str, ...]
    argument: str | int


# Returns the name and value of each dimension that a request has.
ValuesOf = Callable[["HttpRequest"], tuple[tuple[str, str], ...]]
# Returns the effects of a hit's view of a subject.
EffectsOf = Callable[["Hit", str], tuple[Effect, ...]]

# Returns the calls that the round trip of a hit also runs.
CallsOf = Callable[["Hit"], Sequence["Call[Any]"]]


class PartConfig(AppConfig):
    """The configuration of a part. Each method returns what the part adds to the core.

    What a method needs beyond that is imported within it, because every web worker loads the
    configuration.
    """

    default_auto_field = "django.db.models.BigAutoField"
    # So that Django takes for the app's configuration the class that extends this one, and not this
    # one, which the module of that class imports.
    default = False
    needs: Sequence[str] = ()  # the other parts without which this one does not work
    uses: Sequence[str] = ()  # other parts of which it does more where they are installed
    # The name in READTRACK of the dict with the settings of the part; "" for a part without any.
    setting = ""
    setting_about = ""  # a sentence for the reference: its keys, and what they mean
    scripts: Sequence[str] = ()  # names of the scripts in its folder `lua`, without `.lua`
    # Those of them that are not run a second time, because they would answer that nothing is new.
    scripts_run_once: Sequence[str] = ()
    forms: Sequence[str] = ()  # names of its forms of read state, for `read_state` in MODELS
    model_options: Sequence[str] = ()  # keys that it adds to the entries of MODELS
    # True for a part whose pages of the admin show the numbers of the site. The core's page of
    # counts is then not in the list of the admin.
    shows_numbers = False

    def __init_subclass__(cls) -> None:
        cls.default = cls.__dict__.get("default", True)

    def setting_keys(self) -> type[Any] | None:
        """Returns the class, a NamedTuple, with the keys of the part's setting, their types and
        their defaults, by which the core checks them; None for a part that checks them itself.
        """
        return None

    def checks(self) -> Sequence[Check]:
        """Returns the system checks of the part. They touch no network."""
        return ()

    def keys(self) -> "Sequence[Key]":
        """Returns the rows that the part adds to the table of keys; the same objects each time.

        They follow renames, resets and deletions as each row says.
        """
        return ()

    def subcommands(self) -> "Sequence[Subcommand]":
        """Returns the subcommands that the part adds to `manage.py readtrack`."""
        return ()

    def jobs(self) -> Sequence[Job]:
        """Returns what of the part has to run by the schedule."""
        return ()

    def urls(self) -> "Sequence[URLPattern]":
        """Returns the patterns that the part adds to `readtrack.urls`. Their namespace is
        `readtrack`.
        """
        return ()

    def admin_urls(self, admin_site: "AdminSite") -> "Sequence[URLPattern]":
        """Returns the patterns of pages that the part adds to the admin, below the dashboard's
        address. Their views are wrapped by `admin_site.admin_view`.
        """
        return ()

    def admin_links(self) -> Sequence[AdminLink]:
        """Returns the links that the part adds to the head of the dashboard."""
        return ()

    def form_links(self, obj: "Model", user: Any, *, site: str) -> Sequence[FormLink]:
        """Returns the links that the part adds to the form of the object, as far as the user may
        open their pages. `site` is the name of the admin site.
        """
        return ()

    def add_tags(self, library: "Library") -> None:
        """Adds the tags of the part to those that `{% load readtrack %}` loads."""

    def jinja_functions(self) -> Mapping[str, Any]:
        """Returns the functions that the part adds to templates of Jinja2, by name."""
        return {}

    def reporting(self) -> "Reporting | None":
        """Returns what the part decides about pages that later requests of its own tell of again;
        None if it sends no such requests. Only one part does.
        """
        return None

    def hears_publications(self) -> bool:
        """Returns True if Redis is to tell each publication as it happens, see `store.channel`."""
        return False

    def dimensions(self) -> Sequence[str]:
        """Returns the names of what the part divides views by, such as "channel". They are in the
        names of keys.
        """
        return ()

    def values_function(self) -> "ValuesOf | None":
        """Returns the function that tells the name and value of each dimension that a request has;
        None for a part without dimensions.
        """
        return None

    def asks_site_about_requests(self) -> bool:
        """Returns True if functions of the site look at the request of each view. They expect what
        the site's middlewares do, so reports then go through all of them.
        """
        return False

    def stages(self) -> Sequence[str]:
        """Returns the stages that the part adds to the funnel, in their order. Visitors take steps
        to them.
        """
        return ()

    def trends_by_seen(self) -> bool:
        """Returns True if what is trending goes by views that were seen, in place of all views."""
        return False

    def counting_needs(self) -> CountingNeeds | None:
        """Returns what the part needs in the script that counts a view; None if it needs nothing.

        It costs each view. What only some views need is better an effect.
        """
        return None

    def effects(self, label: str) -> EffectsOf | None:
        """Returns the function that tells the effects of a view; None if views of the model `label`
        have none.
        """
        return None

    def calls_of_hits(self) -> CallsOf | None:
        """Returns the function that takes a hit and returns the calls which its round trip also
        runs; None if there are none.

        The calls run behind those that count the hit, so that a page pays no further round trip.
        They may run twice. Each has a value for `absent`, or else a silent server of a cluster
        would take the outcome of the hit away. What is refused before Redis is asked, such as a
        view of a robot, is not among the hit's views; a repeat is.
        """
        return None

    def sending(self) -> "Sending | None":
        """Returns how the hits of pages are sent; None if each page is to send its own. Only one
        part has another way.
        """
        return None

    def division(self) -> Division | None:
        """Returns into what the part divides the keys and the flush; None if it does not. Only one
        part does.
        """
        return None

    def questions(self, question: Callable[..., Any]) -> Sequence[Any]:
        """Returns the questions that the part adds to those of a part with an API. `question` is
        that part's class of them, so that it need not be installed.
        """
        return ()

    def read_state_forms(self) -> "Mapping[str, Form]":
        """Returns the forms of read state that are the part's, by the label of the model that has
        one.
        """
        return {}

    def derived_categories(self) -> "Iterable[type[Model]]":
        """Returns the models of categories without read state of their own: the part makes their
        dots out of those of other categories.
        """
        return ()

    def keys_of_read_state(self) -> "KeysOfPart | None":
        """Returns how the part copies its keys of read state to SQL and back, and moves them; None
        for a part without such keys.
        """
        return None

    def flush_steps(self) -> "type[Steps] | None":
        """Returns the class of what the part does in each flush; None if it does nothing there."""
        return None

    def stored_counters(self, names: Sequence[str]) -> "Mapping[str, Stored]":
        """Returns what SQL stores of the part's own counters, by name, so that the flush can settle
        them.

        `names` are those of all unsettled counters but totals, such as `funnel:blog.post:42`, also
        those of other parts, which are to be left out.
        """
        return {}

    def settled(self, counts: "Mapping[str, RowCounts]") -> None:
        """Is told what SQL stores of subjects, whose totals in Redis begin anew with that."""

    def subjects_left_out(self) -> frozenset[str]:
        """Returns the subjects whose past the part is writing now.

        A flush that comes late, after a pause, leaves their past alone, or else these views would
        be in history twice.
        """
        return frozenset()

    def rename(self, before: str, after: str) -> None:
        """Gives a model (`blog.post`) or an object (`blog.post:42`) its new name where the part has
        the name in SQL elsewhere than as the subject of rows. It is called in the transaction that
        changes the name.
        """

    def place_panel(self, response: Any, content: bytes, user: Any | None) -> bytes:
        """Returns the content of a page with `{% readtrack_panel %}`, in which the part has filled
        in the panel for the user. It may change the headers of the response.
        """
        return content

    def shown(self, obj: "Model", *, has_redis: bool) -> "Sequence[Line]":
        """Returns what `readtrack show` prints of the object, below what the core knows of it.

        Without `has_redis` only SQL can be asked.
        """
        return ()

    def forget_user(self, pk: Any) -> None:
        """Deletes what the part keeps of a user whose row is gone. A later user may get the same
        primary key.
        """

    def erase_user(self, pk: Any, *, is_dry_run: bool) -> int:
        """Deletes what the part keeps of the user, who may go on using the site.

        Returns the number of rows and keys. With `is_dry_run` it changes nothing.
        """
        return 0


@cached_setting("INSTALLED_APPS")
def is_installed(name: str) -> bool:
    """Returns True if the part with that name is installed, such as `readtrack.networks`.

    Cached, because Django looks through all apps each time.
    """
    return apps.is_installed(name)


def require(name: str) -> None:
    """Raises ImproperlyConfigured if the part is not installed.

    The models of a part call it, because Django would take them for models of the core, whose
    folder the part is in.
    """
    if not apps.is_installed(name):
        raise ImproperlyConfigured(shipped.missing(f"{name}.models", name))


@cached_setting("INSTALLED_APPS", maxsize=1)
def installed() -> tuple[PartConfig, ...]:
    """Returns the installed parts, in the order of INSTALLED_APPS."""
    return tuple(config for config in apps.get_app_configs() if isinstance(config, PartConfig))


@cached_setting("INSTALLED_APPS", maxsize=1)
def reporting() -> "Reporting | None":
    """Returns what a part decides about pages that are told of again; None without such a part."""
    return next(filter(None, (part.reporting() for part in installed())), None)


@cached_setting("INSTALLED_APPS", maxsize=1)
def division() -> Division:
    """Returns into what the keys and the flush of this site are divided."""
    return next(filter(None, (part.division() for part in installed())), Division())


@cached_setting("INSTALLED_APPS", maxsize=1)
def dimensions() -> tuple[str, ...]:
    """Returns the names of the dimensions of all installed parts."""
    return tuple(name for part in installed() for name in part.dimensions())


@cached_setting("INSTALLED_APPS", maxsize=1)
def values_functions() -> tuple[ValuesOf, ...]:
    """Returns the functions of all installed parts that tell the values of a request."""
    functions = [part.values_function() for part in installed()]
    return tuple(function for function in functions if function is not None)


@cached_setting("INSTALLED_APPS", maxsize=1)
def stages() -> tuple[str, ...]:
    """Returns the stages of the funnel in their order: those of each installed part, in the order
    of INSTALLED_APPS.
    """
    return tuple(stage for part in installed() for stage in part.stages())


@cached_setting("INSTALLED_APPS", maxsize=1)
def model_options() -> tuple[str, ...]:
    """Returns the keys that all installed parts add to the entries of MODELS."""
    return tuple(name for part in installed() for name in part.model_options)


def models() -> "list[type[Model]]":
    """Returns the models of the core and of all installed parts."""
    app_configs = (apps.get_app_config("readtrack"), *installed())
    return [model for config in app_configs for model in config.get_models()]


def absent_tags() -> dict[str, str]:
    """Returns the tags that come with readtrack and are not there, each with the part that it
    needs.
    """
    installed_names = {part.name for part in installed()}
    part_by_tag = {}
    for part_name, shipped_part in shipped.PARTS.items():
        if part_name not in installed_names:
            part_by_tag.update(dict.fromkeys(shipped_part.tags, part_name))
    return part_by_tag


@cached_setting("INSTALLED_APPS", maxsize=1)
def _functions_of_hits() -> tuple[CallsOf, ...]:
    functions = [part.calls_of_hits() for part in installed()]
    return tuple(function for function in functions if function is not None)


def calls_of_hit(hit: "Hit") -> "list[Call[Any]]":
    """Returns the calls of all installed parts that the round trip of the hit also runs."""
    calls: list[Call[Any]] = []
    for calls_of in _functions_of_hits():
        calls += calls_of(hit)
    return calls


def jobs() -> list[Job]:
    """Returns the jobs of all installed parts."""
    return [job for part in installed() for job in part.jobs()]


def settings() -> dict[str, PartConfig]:
    """Returns the installed parts that have settings, by the name of their dict in READTRACK."""
    return {part.setting: part for part in installed() if part.setting}
