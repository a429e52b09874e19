"""Categories, and a reader of them."""

from tests.reports.conftest import categories as categories
from tests.reports.conftest import user as user
