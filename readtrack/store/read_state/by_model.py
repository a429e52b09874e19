"""The form of read state of each category, by its model."""

from collections.abc import Mapping

from readtrack import parts
from readtrack.conf import cached_setting, conf
from readtrack.registry import registry
from readtrack.store.read_state.forms import Bitmaps, Form, Sequences
from readtrack.subjects import label_in, label_of, model_with_label

# The forms that keep read state by category. The setting DOTS names one of them.
FORMS: dict[str, Form] = {"bitmap": Bitmaps(), "sequence": Sequences()}
DEFAULT = FORMS["bitmap"]


def form_of(subject: str) -> Form:
    """Returns the form of the read state of a category, given by its subject or its model's label.

    It is that of the setting DOTS unless MODELS names another one for the model. For that of DOTS,
    `subject` may be "".
    """
    forms = forms_by_label()
    if forms:
        form = forms.get(label_in(subject))
        if form is not None:
            return form
    return FORMS.get(conf.DOTS.form, DEFAULT)  # a check names an unknown one


@cached_setting("INSTALLED_APPS")
def forms_by_label() -> Mapping[str, Form]:
    """Returns the forms that MODELS names, those of parts among them, by the label of the model."""
    forms: dict[str, Form] = {}
    for configured_label, options in registry().items():
        model = model_with_label(configured_label)
        if model is not None and options.read_state in FORMS:
            forms[label_of(model)] = FORMS[str(options.read_state)]
    for part in parts.installed():
        forms.update(part.read_state_forms())
    return forms


def names() -> tuple[str, ...]:
    """Returns the names of all forms that MODELS may name: of the core, and of installed parts."""
    of_parts = [name for part in parts.installed() for name in part.forms]
    return (*FORMS, *of_parts)
