"""The site of all tests, with triggers."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = ["pgtrigger", *INSTALLED_APPS]
