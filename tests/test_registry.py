"""The setting MODELS is read once, as a frozen value for each model."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from pytest_django import Settings

from readtrack import subjects
from readtrack.registry import ModelOptions, registry
from tests.site.models import Gadget, Gizmo, Page


def test_an_entry_has_a_value_for_each_option(settings: Settings) -> None:
    settings.READTRACK = {"MODELS": {"site.Gadget": {"counted": True, "news_for": ["category"]}}}
    options = registry()["site.gadget"]
    assert options == ModelOptions(counted=True, news_for=("category",), read_state=False)
    with pytest.raises(FrozenInstanceError):
        options.counted = False  # type: ignore[misc]


@pytest.mark.parametrize("entry", [None, [], "x", {"counted": "yes"}, {"news_for": "category"}])
def test_an_entry_of_a_wrong_type_says_nothing(settings: Settings, entry: Any) -> None:
    settings.READTRACK = {"MODELS": {"site.Gadget": entry}}
    assert registry() == {"site.gadget": ModelOptions()}


def test_a_childs_entry_leaves_its_parents_news_as_they_are(settings: Settings) -> None:
    parent = {"site.Gadget": {"news_for": ["category"]}}
    settings.READTRACK = {"MODELS": {**parent, "site.Gizmo": {"counted": True}}}
    assert [field.name for field in subjects.news_links(Gizmo)] == ["category"]
    settings.READTRACK = {"MODELS": {**parent, "site.Gizmo": {"news_for": []}}}
    assert subjects.news_links(Gizmo) == []
    assert [field.name for field in subjects.news_links(Gadget)] == ["category"]


def test_the_attributes_of_a_tracked_model_come_first(settings: Settings) -> None:
    before = subjects.news_links(Page)
    settings.READTRACK = {"MODELS": {"site.Page": {"news_for": []}}}
    assert subjects.news_links(Page) == before != []
