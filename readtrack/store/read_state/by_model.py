"""The form of read state of each category, by its model."""

from collections.abc import Mapping, Sequence

from readtrack.conf import cached_setting, conf
from readtrack.registry import registry
from readtrack.store.read_state.forms import Bitmaps, Sequences, Strategy
from readtrack.store.read_state.positions import Boards, Positions
from readtrack.subjects import label_in, label_of, model_with_label, thread_labels

# The forms that keep read state by category. The setting DOTS names one of them.
STRATEGIES: dict[str, Strategy] = {"bitmap": Bitmaps(), "sequence": Sequences()}
DEFAULT = STRATEGIES["bitmap"]


def strategy_of(subject: str) -> Strategy:
    """Returns the form of the read state of a category, given by its subject or its model's label.

    It is that of the setting DOTS unless MODELS names another one for the model. For that of DOTS,
    `subject` may be "".
    """
    forms = forms_by_label()
    if forms:
        form = forms.get(label_in(subject))
        if form is not None:
            return form
    return STRATEGIES.get(conf.DOTS.form, DEFAULT)  # a check names an unknown one


def threads_in(label: str) -> Sequence[Positions]:
    """Returns the forms of the threads that are in boards of the model with that label."""
    form = forms_by_label().get(label)
    return form.threads if isinstance(form, Boards) else ()


@cached_setting()
def forms_by_label() -> Mapping[str, Strategy]:
    """Returns the forms that MODELS names, by the label of the model, and that of their boards."""
    forms: dict[str, Strategy] = {}
    positions: dict[str, Positions] = {}
    for configured_label, options in registry().items():
        model = model_with_label(configured_label)
        if model is None:
            continue
        label = label_of(model)
        if options.read_state == Positions.name:
            positions[label] = Positions(label)
        elif options.read_state in STRATEGIES:
            forms[label] = STRATEGIES[str(options.read_state)]
    for board_label, labels in thread_labels().items():
        threads = [positions[label] for label in labels if label in positions]
        if threads:
            forms[board_label] = Boards(threads)
    return {**forms, **positions}
