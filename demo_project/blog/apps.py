"""The Django app of the newsroom."""

from django.apps import AppConfig


class BlogConfig(AppConfig):
    """Labelled `blog`, which is what the subjects in Redis are called after."""

    name = "demo_project.blog"
    verbose_name = "Newsroom"

    def ready(self) -> None:
        """Makes the Celery app, by which tasks are sent. The package itself imports nothing that has
        to be installed.
        """
        from demo_project import celery as celery
