"""What other apps make of a Tracked model's fields: versions, and columns for each language."""

from typing import Any

import pytest
from django.core import serializers
from django.db import connection, models
from django.test.utils import isolate_apps

from readtrack import reports
from readtrack.flush.run import flush
from readtrack.models import Tracked
from readtrack.models.tracked import changed_fields, news_columns
from tests.site.models import Post
from tests.support import factories
from tests.support.counts import stored, view_times

pytestmark = pytest.mark.django_db(transaction=True)


def version_model() -> Any:
    """Returns a model with copies of the fields of Post, as django-simple-history makes them."""
    body: dict[str, Any] = {"__module__": __name__, "version": models.AutoField(primary_key=True)}
    body["Meta"] = type("Meta", (), {"app_label": "site"})
    for name in ("title", "view_count", "visitor_count"):
        field: Any = Post._meta.get_field(name)
        body[name] = field.clone()
    body["post_id"] = models.IntegerField()
    return type("PostVersion", (models.Model,), body)


@isolate_apps("tests.site")
def test_a_version_has_the_count_and_a_restored_row_gets_it_back() -> None:
    version_of = version_model()
    with connection.schema_editor() as editor:
        editor.create_model(version_of)
    try:
        post = factories.post()
        view_times(post, 5)
        flush()
        post = Post.objects.get()
        names = ("title", "view_count", "visitor_count")
        fields = {name: getattr(post, name) for name in names}
        version = version_of.objects.create(post_id=post.pk, **fields)
        version.save()
        post.delete()
        version = version_of.objects.get()
        assert (version.view_count, version.visitor_count) == (5, 5)
        restored = Post(pk=version.post_id, **{name: getattr(version, name) for name in names})
        restored.save()
        assert stored(restored) == 5
        view_times(restored, 2)
        flush()
        restored = Post.objects.get()
        assert reports.views([restored])[restored] == 7
        # An existing row is set back to a version, and keeps its count.
        Post(pk=version.post_id, **{name: getattr(version, name) for name in names}).save()
        assert stored(restored) == 7
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(version_of)


def test_a_copy_of_the_row_itself_starts_at_nothing_still() -> None:
    post = factories.post()
    view_times(post, 5)
    flush()
    post = Post.objects.get()
    post.pk = None
    post._state.adding = True
    post.save()
    assert stored(post) == 0


class TranslationCharField(models.CharField):
    """A column for one language, as django-modeltranslation adds it."""

    def __init__(self, translated_field: Any, **options: Any) -> None:
        super().__init__(**options)
        self.translated_field = translated_field


@isolate_apps("tests.site")
def test_a_translated_field_is_compared_in_every_language_and_not_by_its_own_column() -> None:
    class Story(Tracked):
        title = models.CharField(max_length=50)
        text = models.TextField()

        news_fields = ("title", "text")

        class Meta:
            app_label = "site"

    for language in ("en", "de"):
        field = TranslationCharField(Story._meta.get_field("title"), max_length=50, null=True)
        field.contribute_to_class(Story, f"title_{language}")
    assert news_columns(Story) == {"title_en": "title", "title_de": "title", "text": "text"}
    row = {"title_en": "Hello", "title_de": "Hallo", "text": "x"}
    # The own column has what the language of the moment makes of it.
    assert changed_fields(Story(title="Hallo", **row), row) == set()
    assert changed_fields(Story(**{**row, "title_de": "Guten Tag"}), row) == {"title"}


def test_a_dump_has_plain_numbers() -> None:
    post = factories.post()
    view_times(post, 5)
    flush()
    [row] = serializers.serialize("python", Post.objects.all())
    counts = [row["fields"][name] for name in ("view_count", "visitor_count")]
    assert counts == [5, 5]
    assert {type(count) for count in counts} == {int}  # YAML refuses every other type
