"""Settings of the tests in a site of Wagtail: those of all tests, and Wagtail's apps."""

from tests import settings as base
from tests.settings import *  # noqa: F403

del TASKS  # noqa: F821 - before Django 6.0, Wagtail has them of another package, with the same name
INSTALLED_APPS = [
    # Ahead of readtrack and of Wagtail, though a site names it behind them: the order is no matter.
    "readtrack.contrib.wagtail",
    *base.INSTALLED_APPS,
    "wagtail.contrib.routable_page",
    "wagtail.contrib.simple_translation",
    "wagtail.users",
    "wagtail.snippets",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.search",
    "wagtail.admin",
    "wagtail",
    "modelcluster",
    "taggit",
    "tests.contrib.wagtail.site",
]
# The tables are made from the models: Wagtail has two hundred migrations.
APPS_WITH_MIGRATIONS = ("admin", "auth", "contenttypes", "sessions", "readtrack", "site", "taggit")
APPS_OF_WAGTAIL = ("core", "users", "snippets", "docs", "images", "search", "admin")
MIGRATION_MODULES = {
    **dict.fromkeys(APPS_WITH_MIGRATIONS),
    **dict.fromkeys(f"wagtail{name}" for name in APPS_OF_WAGTAIL),
}
ROOT_URLCONF = "tests.contrib.wagtail.site.urls"
WAGTAIL_SITE_NAME = "Tests"
WAGTAILADMIN_BASE_URL = "http://testserver"
WAGTAIL_I18N_ENABLED = True
WAGTAIL_CONTENT_LANGUAGES = LANGUAGES = [("en", "English"), ("de", "German")]
WAGTAILSEARCH_BACKENDS = {"default": {"BACKEND": "wagtail.search.backends.database"}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"  # Wagtail's migrations ask for it
READTRACK: dict[str, object] = {
    **base.READTRACK,
    "MODELS": {
        "wagtail_site.EventPage": {"counted": True, "news_for": ["venue"]},
        "wagtail_site.IndexPage": {"read_state": True},
    },
    "FRONT_END": {"queryset": "readtrack.contrib.wagtail.visibility.visible"},
}
