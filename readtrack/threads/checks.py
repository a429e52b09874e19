"""Checks of the options in MODELS that are for threads."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.apps import apps
from django.core import checks
from django.db.models import Model

from readtrack import registry, subjects
from readtrack.conf import conf
from readtrack.threads import paths


def check_options() -> list[checks.CheckMessage]:
    """Checks that the options of threads in MODELS have values of their types, and a model whose
    read state is kept by reader.
    """
    return [
        checks.Error(
            f"READTRACK['MODELS']['{label}'] {problem}.",
            hint=(
                "Give a model with 'read_state': 'positions' a list of the foreign keys to its"
                " boards, 'boards': ['field'], and if not everybody may see each row"
                " 'is_public': 'path.of.function'."
            ),
            id="readtrack.E099",
        )
        for label, entry in conf.MODELS.items()
        if isinstance(entry, dict)
        for problem in _problems(entry)
    ]


def _problems(entry: Mapping[Any, Any]) -> Iterator[str]:
    """Yields what is wrong with an entry of MODELS: sentences about it, from the verb on."""
    boards = entry.get("boards", [])
    is_list = isinstance(boards, (list, tuple))
    if not is_list or not all(isinstance(path, str) for path in boards):
        yield f"has 'boards': {boards!r} and no list of names"
    if not isinstance(entry.get("is_public", ""), str):
        yield f"has 'is_public': {entry['is_public']!r}"
    for name in ("boards", "is_public"):
        if name in entry and entry.get("read_state") != "positions":
            yield f"has {name!r} without 'read_state': 'positions'"


def check_boards() -> list[checks.CheckMessage]:
    """Checks that `boards` in MODELS leads to models whose dots come from these rows alone."""
    messages: list[checks.CheckMessage] = []
    for label in registry.registry():
        model = subjects.model_with_label(label)
        if model is None:
            continue
        boards = paths.board_paths(model)
        for path in paths.named_paths(label):
            board = boards.get(path)
            problem = _problem_of_board(board)
            if problem:
                messages.append(
                    checks.Error(
                        f"READTRACK['MODELS']['{label}'] has the board {path!r}, {problem}.",
                        hint=(
                            "Name foreign keys of the model, or paths of them such as"
                            " 'board__forum', to models whose dots come from its rows alone."
                        ),
                        id="readtrack.E059",
                    )
                )
    return messages


def _problem_of_board(board: type[Model] | None) -> str:
    """Returns the reason why the model is no board, from "which" on; "" for a board."""
    if board is None:
        return "which leads to no model"
    if any(
        board is link.related_model
        for model in apps.get_models()
        for link in subjects.news_links(model)
    ):
        return "which a 'news_for' leads to, too"
    options = registry.registry().get(board._meta.label_lower)
    if options is not None and options.read_state:
        return "which has a 'read_state' of its own"
    return ""
