"""A user of the tests of read state."""

import pytest
from django.contrib.auth.models import User

from tests.support import factories


@pytest.fixture
def ann() -> User:
    return factories.user()
