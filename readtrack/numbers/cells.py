"""Texts as cells of files, which spreadsheets open."""

import re

# The beginning of a cell that a spreadsheet may take for a formula. Spreadsheets that do not take
# the file's separator begin a cell after each `;`. The last four characters are the full-width
# forms of the first four.
FORMULA = re.compile(r"""(^|;)([\s"]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def no_formula(text: str) -> str:
    """Returns the text as a cell of a file that no spreadsheet takes for a formula.

    An apostrophe comes right before the character that would begin a formula.
    """
    return FORMULA.sub(r"\1\2'", text)
