"""The Django app of the newsroom."""

from django.apps import AppConfig


class BlogConfig(AppConfig):
    """Labelled `blog`, which is what the subjects in Redis are called after."""

    name = "demo_project.blog"
    verbose_name = "Newsroom"
