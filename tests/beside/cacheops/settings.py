"""The site of all tests, whose querysets are answered by a cache."""

from tests.settings import *  # noqa: F403
from tests.settings import CACHES, INSTALLED_APPS

INSTALLED_APPS = ["cacheops", *INSTALLED_APPS]
# Another database of the same server, because the tests empty the first one.
CACHEOPS_REDIS = CACHES["default"]["LOCATION"].rpartition("/")[0] + "/9"
CACHEOPS = {"*.*": {"ops": "all", "timeout": 3600}}
