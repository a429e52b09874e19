"""Libraries that write values as JSON, MessagePack or YAML by their exact type take counts for ints, or
say that they do not."""

import io
import json
from typing import Any

import cattrs
import msgspec
import orjson
import pydantic
import pytest
import ruamel.yaml
from django.core import serializers

from tests.site.models import Post
from tests.support import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def post() -> Any:
    factories.post()
    Post.objects.update(view_count=5, visitor_count=3)
    return Post.objects.get()


class Story(msgspec.Struct):
    view_count: int


def test_msgspec_takes_a_count_that_is_turned_into_an_int(post: Any) -> None:
    assert msgspec.json.encode({"views": int(post.view_count)}) == b'{"views":5}'
    assert msgspec.json.encode({"views": post.view_count}, enc_hook=int) == b'{"views":5}'
    assert msgspec.convert(Post.objects.values("view_count").get(), Story) == Story(5)
    # The library asks for exactly int. A count of a row is more, so that a copy of the row is known.
    with pytest.raises(TypeError, match="StoredCount"):
        msgspec.json.encode({"views": post.view_count})
    assert msgspec.convert(post, Story, from_attributes=True).view_count == 5


def test_ruamel_takes_a_count_that_is_turned_into_an_int(post: Any) -> None:
    text = io.StringIO()
    ruamel.yaml.YAML(typ="safe").dump({"views": int(post.view_count)}, text)
    assert ruamel.yaml.YAML(typ="safe").load(text.getvalue()) == {"views": 5}
    with pytest.raises(ruamel.yaml.representer.RepresenterError):
        ruamel.yaml.YAML(typ="safe").dump({"views": post.view_count}, text)


def test_orjson_writes_the_counts_of_a_row(post: Any) -> None:
    assert json.loads(orjson.dumps([post.view_count, post.visitor_count])) == [5, 3]


def test_pydantic_and_cattrs_take_the_counts_of_a_row(post: Any) -> None:
    strict = pydantic.TypeAdapter(int, config=pydantic.ConfigDict(strict=True))
    assert strict.validate_python(post.view_count) == 5
    assert strict.dump_json(post.view_count) == b"5"
    assert cattrs.unstructure({"views": post.view_count}) == {"views": 5}


def test_django_writes_a_row_as_yaml(post: Any) -> None:
    assert "view_count: 5" in serializers.serialize("yaml", [post])
