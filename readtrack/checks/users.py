"""Check of the site's users, who are readers with dots."""

from django.core import checks

from readtrack.hits import readers


def check_user_model() -> list[checks.CheckMessage]:
    """Checks that the site has users."""
    if readers.user_model() is not None:
        return []
    return [
        checks.Error(
            "The site has no users, because 'django.contrib.auth' is not in INSTALLED_APPS.",
            hint=(
                "Add 'django.contrib.auth' and 'django.contrib.contenttypes' to INSTALLED_APPS, and"
                " run migrate. Nobody has to sign in: views count without the middlewares of"
                " sessions and authentication."
            ),
            id="readtrack.E052",
        )
    ]
