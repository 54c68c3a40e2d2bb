"""Find the hook functions of a package's `_plugin.py` by their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pluggy import HookspecMarker, PluginManager

from portico.errors import nearest
from portico.ports import PORTS, PortInfo

__all__ = ["Hook", "Hooks", "hooks_of", "no_hook_in"]

_PROJECT = "portico"
_PREFIX = "portico_"


@dataclass(frozen=True, slots=True)
class Hook:
    """One implementation of a hook in a package."""

    port: PortInfo
    call: Callable[[], object]

    @property
    def name(self) -> str:
        """The hook's name, `portico_text_searches`."""
        return self.port.hook


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a module implements, and sentences about what looks like a hook and is none."""

    found: tuple[Hook, ...]
    problems: tuple[str, ...]


def hooks_of(module: ModuleType, name: str) -> Hooks:
    """Return the hooks that ``module`` implements, in the order of the ports.

    Pluggy finds and checks them; each is handed back by itself, because pluggy's own call stops at the first
    one that raises. Raises ``TypeError`` when the entry point is none.
    """
    if not isinstance(module, ModuleType):
        raise TypeError(f"the entry point must be a module with hook functions, not a {type(module).__name__}")
    manager = _HooksByName(_PROJECT)
    manager.add_hookspecs(_specifications())
    manager.register(module, name)
    found = tuple(
        Hook(port, implementation.function)
        for port in PORTS
        for implementation in getattr(manager.hook, port.hook).get_hookimpls()
    )
    return Hooks(found, tuple(_lookalikes(module)))


def no_hook_in(module: ModuleType) -> str:
    """Say that a module has no hook, with the one that a function of it is nearest to."""
    said = f"It registers nothing: no function of {module.__name__} is a hook."
    names = sorted(_hook_names())
    for attribute, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            near = nearest(attribute, [*names, *(name.removeprefix(_PREFIX) for name in names)], count=1)
            if near:
                return f"{said} Its {attribute} would be one as {_PREFIX}{near[0].removeprefix(_PREFIX)}."
    return f"{said} The hooks are {', '.join(names)}."


class _HooksByName(PluginManager):
    """Take every function that is named as a hook is, marked or not."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        """Return pluggy's options for a hook's implementation, None for anything else."""
        function = getattr(plugin, name, None)
        return {} if name in _hook_names() and inspect.isfunction(function) and not _unfit(name, function) else None


def _unfit(name: str, function: Any) -> str:
    """Say why a function cannot be called as a hook is; empty where it can be."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return f"Its hook {name} is asynchronous; a hook is a plain function."
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind not in variadic
    ]
    return f"Its hook {name} takes {', '.join(needed)}; hooks take nothing." if needed else ""


def _hook_names() -> frozenset[str]:
    return frozenset(port.hook for port in PORTS)


def _specifications() -> type:
    """Make pluggy's specification of every hook from the table of ports: no arguments, a list of Registrations."""

    def specification() -> Callable[[], None]:
        def hook() -> None: ...

        return HookspecMarker(_PROJECT)(hook)

    return type("Specifications", (), {port.hook: staticmethod(specification()) for port in PORTS})


def _lookalikes(module: ModuleType) -> list[str]:
    names = _hook_names()
    problems = []
    for attribute, value in vars(module).items():
        if not attribute.startswith(_PREFIX) or isinstance(value, ModuleType):
            continue
        if attribute in names:
            if not inspect.isfunction(value):
                problems.append(f"Its {attribute} is a {type(value).__name__}, not a function.")
            elif unfit := _unfit(attribute, value):
                problems.append(unfit)
        elif inspect.isfunction(value):
            close = nearest(attribute, sorted(names), count=1)
            advice = f"The nearest is {close[0]}." if close else f"The hooks are {', '.join(sorted(names))}."
            problems.append(f"Its function {attribute} is no hook and is not called. {advice}")
    return problems
