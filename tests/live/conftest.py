"""A post of a category of its own."""

from tests.views.conftest import category as category
from tests.views.conftest import post as post
