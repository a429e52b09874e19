"""A site with no page at all."""

urlpatterns: list[object] = []
