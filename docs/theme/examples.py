"""Shows the examples of docstrings as code on the pages of the API reference."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Module, Object

_EXAMPLE = re.compile(r"^>>> .*\n(?:.+\n?)*", re.MULTILINE)


class Examples(Extension):
    """Fence what starts with a prompt."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of each object that is read."""
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            text = obj.docstring.value.replace("```", "")
            obj.docstring.value = _EXAMPLE.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```\n", text + "\n")

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Leave out the docstrings of modules: a page introduces its module itself."""
        for module in (pkg, *pkg.modules.values()):
            module.docstring = None
