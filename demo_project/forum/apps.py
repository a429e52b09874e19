"""The Django app of the forum."""

from django.apps import AppConfig


class ForumConfig(AppConfig):
    """Labelled `forum`, which is what the subjects in Redis are called after."""

    name = "demo_project.forum"
    verbose_name = "Forum"
