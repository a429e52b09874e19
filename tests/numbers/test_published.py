"""When objects were published, by a field that their model or MODELS names."""

from typing import Any

import pytest
from django.utils import timezone as zones
from pytest_django import Settings

from readtrack.checks.setup import check_setup
from readtrack.numbers.published import published_at, published_field
from tests.checks.findings import the_message
from tests.site.models import Article, Headline, Member, Thread
from tests.support import factories
from tests.support.rows import each_row


@each_row(
    ("entries", "check_id", "words"),
    [
        ({"site.Gadget": {"published_field": 7}}, "E067", "'published_field': 'field'"),
        ({"site.Gadget": {"publication_notes": True}}, "E067", "'publication_notes': 3"),
        ({"site.Gadget": {"published_field": "name"}}, "E065", "Name a DateField or"),
        ({"site.Thread": {"published_field": "creatd"}}, "E065", "Did you mean 'created'? Name a"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(
    settings: Settings, entries: Any, check_id: str, words: str
) -> None:
    settings.READTRACK = {"MODELS": entries}
    assert words in str(the_message(f"readtrack.{check_id}").hint)


@pytest.mark.parametrize("name", ["title", "nothing", "category"])
def test_a_field_of_publication_that_is_no_date_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Article, "published_field", name, raising=False)
    (message,) = check_setup(None)
    assert message.id == "readtrack.E065"
    assert message.msg == f"site.Article.published_field names '{name}', which is no date of it."
    monkeypatch.setattr(Article, "published_field", "published_at", raising=False)
    assert check_setup(None) == []


def test_a_model_names_its_field_of_publication_and_an_obvious_one_is_found(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert published_field(Article).name == "published_at"
    assert published_field(Headline) is None
    assert published_field(Thread) is None  # neither of its dates is an obvious one
    settings.READTRACK = {"MODELS": {"site.Thread": {"published_field": "created"}}}
    assert published_field(Thread).name == "created"
    monkeypatch.setattr(Article, "published_field", "title", raising=False)
    assert published_field(Article) is None  # a check reports it


@pytest.mark.django_db
def test_a_child_has_its_parents_field_of_publication(settings: Settings) -> None:
    settings.READTRACK = {"MODELS": {"auth.User": {"published_field": "date_joined"}}}
    assert published_field(Member).name == "date_joined"
    now = zones.now()
    assert published_at(factories.user(date_joined=now)) == now
