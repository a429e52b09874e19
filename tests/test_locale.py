"""The texts of visitors, editors and admins, in the languages that the package brings: none is
missing or broken.
"""

import ast
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from gettext import c2py
from pathlib import Path

import polib
import pytest
from django.apps import apps
from django.template import engines
from django.utils import translation
from django.utils.translation.template import templatize

import readtrack
from tests.support import factories

PACKAGE = Path(readtrack.__file__).parent
LANGUAGES = ["ar", "de", "es", "fr", "ja", "pt_BR"]
PLACE = re.compile(r"%\(\w+\)s|<[^>]+>")
CALLS = {"_": 1, "gettext": 1, "ngettext": 2, "pgettext": 2, "npgettext": 3}  # and their texts
STRING = r"""u?("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
CALL = re.compile(rf"\b(_|n?p?gettext)\(\s*{STRING}(?:\s*,\s*{STRING})?(?:\s*,\s*{STRING})?")

SHARED = {
    "All",
    "Django site admin",
    "Filter",
    "User",
    "Home",
    "No, take me back",
    "This month",
    "This year",
    "Today",
    "View on site",
    "Yes, I’m sure",
    "name",
}

# `.ci/run` sets it: before a release no text may lack its translation.
MUST_BE_TRANSLATED = "READTRACK_CI" in os.environ

Key = tuple[str, str]  # context and text


class TranslationWarning(UserWarning):
    """Texts have no translation yet."""


def key(call: str, texts: list[str]) -> Key:
    return (texts[0], texts[1]) if "p" in call else ("", texts[0])


def of_code(source: str) -> Iterator[Key]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            call = re.sub("_(lazy|noop)$", "", name)
            if call in CALLS:
                # A variable holds a text that is marked elsewhere.
                texts = [
                    str(word.value)
                    for word in node.args[: CALLS[call]]
                    if isinstance(word, ast.Constant)
                ]
                if len(texts) == CALLS[call]:
                    yield key(call, texts)


def of_template(source: str) -> Iterator[Key]:
    for call, *texts in CALL.findall(templatize(source)):
        yield key(call, [ast.literal_eval(text) for text in texts if text])


@cache
def marked() -> set[Key]:
    """Returns the texts that are marked for translation in code and templates."""
    code = (one for path in PACKAGE.rglob("*.py") for one in of_code(path.read_text()))
    templates = (one for path in PACKAGE.rglob("*.html") for one in of_template(path.read_text()))
    return {*code, *templates}


@cache
def catalogue(language: str, *, suffix: str) -> dict[Key, polib.POEntry]:
    read = polib.pofile if suffix == "po" else polib.mofile
    found = read(str(PACKAGE / "locale" / language / "LC_MESSAGES" / f"django.{suffix}"))
    return {(one.msgctxt or "", one.msgid): one for one in found if not one.obsolete}


def texts(entry: polib.POEntry) -> list[str]:
    return [*entry.msgstr_plural.values()] if entry.msgid_plural else [entry.msgstr]


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_texts_of_code_and_of_templates_are_found() -> None:
    assert {
        ("", "Sign in first."),
        ("", "Last saved"),
        ("", "%(views)s view"),
        ("thousands", "k"),
    } <= marked()


def untranslated(language: str) -> list[str]:
    """Returns the texts that the language lacks, or has only guessed."""
    entries = catalogue(language, suffix="po")
    missing = [text for _, text in marked() - set(entries)]
    unsure = [entry.msgid for entry in entries.values() if entry.fuzzy or not all(texts(entry))]
    return sorted([*missing, *unsure])


def test_each_text_is_translated(language: str) -> None:
    """Only a release needs all translations: elsewhere those that are missing are a warning."""
    missing = untranslated(language)
    if missing and not MUST_BE_TRANSLATED:
        warnings.simplefilter("default", TranslationWarning)  # a warning is an error otherwise
        warnings.warn(TranslationWarning(f"{language} lacks {missing}"), stacklevel=1)
    else:
        assert missing == []


def test_the_compiled_texts_are_those_of_the_source(language: str) -> None:
    source, compiled = (catalogue(language, suffix=suffix) for suffix in ("po", "mo"))
    assert {key: texts(one) for key, one in source.items()} == {
        key: texts(one) for key, one in compiled.items()
    }


def forms(language: str) -> dict[int, int]:
    """Returns how many numbers each plural form is for."""
    rule = polib.pofile(str(PACKAGE / "locale" / language / "LC_MESSAGES" / "django.po")).metadata[
        "Plural-Forms"
    ]
    found = re.fullmatch(r"nplurals=(\d); plural=(.*);", rule)
    assert found
    form = c2py(found[2])
    numbers = Counter(form(number) for number in [*range(1000), 1_000_000, 2_000_000])
    assert set(numbers) == set(range(int(found[1])))
    return numbers


def places(text: str) -> list[str]:
    return sorted(PLACE.findall(text))


def test_each_translation_has_the_places_and_elements_of_its_text(language: str) -> None:
    numbers = forms(language)
    for entry in catalogue(language, suffix="po").values():
        if not entry.msgid_plural:
            assert places(entry.msgstr) == places(entry.msgid), entry.msgid
            continue
        assert set(entry.msgstr_plural) == set(numbers), entry.msgid
        for form, text in entry.msgstr_plural.items():
            if numbers[form] > 1 or places(text):  # a form for one number alone need not name it
                assert places(text) == places(entry.msgid_plural), text


def test_a_text_that_counts_something_has_plural_forms(language: str) -> None:
    for entry in catalogue(language, suffix="po").values():
        # A number behind a colon stands for itself.
        is_followed = "%(count)s" in entry.msgid.removesuffix(": %(count)s")
        assert bool(entry.msgid_plural) or not is_followed, entry.msgid


def test_a_text_of_django_means_the_same_here(language: str) -> None:
    """Where an app of Django and this one translate a text, the first of them in INSTALLED_APPS
    does it for both.
    """
    django = Path(apps.get_app_config("admin").path).parents[1]
    folders = [django / "conf", *(django / "contrib" / name for name in ("admin", "auth"))]
    others = set()
    for folder in folders:
        path = folder / "locale" / language / "LC_MESSAGES" / "django.mo"
        others |= {one.msgid for one in polib.mofile(str(path)) if not one.msgctxt}
    assert {
        text for context, text in catalogue(language, suffix="po") if not context
    } & others <= SHARED


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ar", "1,2\u00a0ألف مشاهدة"),
        ("de", "1,2\u00a0Tsd. Aufrufe"),
        ("es", "1,2\u00a0mil vistas"),
        ("fr", "1,2\u00a0k vues"),
        ("ja", "1.2千回閲覧"),
        ("pt-br", "1,2\u00a0mil visualizações"),
        ("es-mx", "1.2\u00a0mil vistas"),
    ],
)
@pytest.mark.django_db
def test_a_site_shows_the_language_of_the_moment(code: str, expected: str) -> None:
    template = engines["django"].from_string(
        "{% load readtrack %}{% view_count post words as n %}{{ n }}"
    )
    with translation.override(code):
        assert expected in template.render({"post": factories.post(view_count=1234)})
