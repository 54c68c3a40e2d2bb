"""Lazy public modules: a name is imported from its private module when it is first used."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def lazy_names(module: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a public module.

    Its names are those that it imports under ``if TYPE_CHECKING:``, so that type checkers and Python read one table.
    The table is taken from the module's compiled code: a package without sources works too.
    """

    @cache
    def table() -> dict[str, str]:
        import dis

        spec = sys.modules[module].__spec__
        code = spec.loader.get_code(module)  # type: ignore[union-attr]
        found, source = {}, ""
        for instruction in dis.get_instructions(code):
            if instruction.opname == "IMPORT_NAME":
                source = instruction.argval
            elif instruction.opname == "IMPORT_FROM" and source.startswith("portico.") and source != __name__:
                found[instruction.argval] = source
        return found

    def get(name: str) -> object:
        if name == "__all__":
            return sorted(table())
        if name.startswith("__") or name not in table():
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(table()[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return get, lambda: sorted(table())
