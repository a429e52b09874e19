"""Elements as lists, from which the page's script makes them."""

import pytest

from readtrack.script.elements import element_of

SVG = {"xmlns": "http://www.w3.org/2000/svg"}

ELEMENTS = {
    '<b title="1">one</b>': ["b", {"title": "1"}, "one"],
    "<b>a &amp; b &#x27;c&#39; &nbsp;</b>": ["b", {}, "a & b 'c' \xa0"],
    '<i title="&quot;x&quot; &lt;">y</i>': ["i", {"title": '"x" <'}, "y"],
    "<span data-rt=Ab hidden></span>": ["span", {"data-rt": "Ab", "hidden": ""}],
    "<B Title=x>y</B>": ["b", {"title": "x"}, "y"],
    "<b>1 <i>new</i> item</b>": ["b", {}, "1 ", ["i", {}, "new"], " item"],
    "<b>1<br>2<img src=x></b>": ["b", {}, "1", ["br", {}], "2", ["img", {"src": "x"}]],
    "<b><i>not ended</b> after": ["b", {}, ["i", {}, "not ended"]],
    "before <b>1</b><i>2</i>": ["b", {}, "1"],
    "<b>1</i></u></b>": ["b", {}, "1"],
    "<b>1<!-- a comment -->2</b>": ["b", {}, "1", "2"],
    '<svg viewBox="0 0 8 8"><circle r="4"/><linearGradient gradientUnits=x /></svg>': [
        "svg",
        {"viewBox": "0 0 8 8", **SVG},
        ["circle", {"r": "4"}],
        ["linearGradient", {"gradientUnits": "x"}],
    ],
    '<b><svg class="r" xmlns="http://www.w3.org/2000/svg"></svg><i>x</i></b>': [
        "b",
        {},
        ["svg", {"class": "r", **SVG}],
        ["i", {}, "x"],
    ],
}


def test_an_element_is_its_name_its_attributes_and_what_is_in_it() -> None:
    wrong = {html: element_of(html) for html in ELEMENTS if element_of(html) != ELEMENTS[html]}
    assert wrong == {}


def test_text_alone_is_no_element() -> None:
    with pytest.raises(ValueError, match="no element"):
        element_of("3 new")
