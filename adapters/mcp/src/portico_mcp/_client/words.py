"""What a server says, made fit to be shown, and to be read by a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from portico.plugins import JsonSchema

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_HIDDEN = ("Cc", "Cf", "Cs", "Co")
_LONGEST = 64
LOST = "portico/lost"
"""Marks, in an answer that the SDK hands on, what was left out of a list, and that an answer was lost."""


def clean(text: str, most: int = 2_000) -> str:
    r"""Return a text without escape sequences, control characters and characters that cannot be seen; shortened.

    >>> clean("red: \x1b[31mread\x1b[0m a file\u202e.\nNow.")
    'red: read a file.\nNow.'
    """
    text = "\n".join(_ESCAPES.sub("", text[: 4 * most]).splitlines())
    text = "".join(each for each in text if each in "\n\t" or unicodedata.category(each) not in _HIDDEN).strip()
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def sentence(text: str) -> str:
    r"""Return what a server said as the end of a sentence, in one line.

    >>> sentence("no such place:\n/home")
    'no such place: /home.'
    """
    words = " ".join(clean(text).split())
    return words if not words or words.endswith((".", "!", "?", "…")) else f"{words}."


def function_name(name: str, prefix: str, taken: Collection[str]) -> str:
    """Return a name of letters, digits and underscores for what a server calls otherwise; equal ones get numbers.

    >>> function_name("admin.tools/list-all", "", ()), function_name("get sum", "x_", {"x_get_sum"})
    ('admin_tools_list_all', 'x_get_sum2')
    """
    folded = unicodedata.normalize("NFKD", name[:500])
    letters = re.findall(r"[0-9A-Za-z_]+", "".join(each for each in folded if not unicodedata.combining(each)))
    return JsonSchema.free_name((prefix + "_".join(letters))[:_LONGEST] or "tool", taken)
