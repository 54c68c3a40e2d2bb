"""Find the installed plugin packages and what each registers. A broken package does not stop another."""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

from pluggy import HookspecMarker, PluginManager

from portico.errors import nearest
from portico.plugins import Registration
from portico.ports import PORTS, PortInfo
from portico_host.calling_out import import_quietly, printing_to_stderr
from portico_host.entry_points import COMMANDS, GROUP, disabled_by_environment, entry_points_of, names_of
from portico_host.packages import Defect, Offer, Package, Plugins, State, title
from portico_host.shipped import folded

__all__ = ["Hook", "Hooks", "discover", "hooks_of", "no_hook_in"]

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


def discover(*, disable: Iterable[str] = (), only: Iterable[str] | None = None) -> Plugins:
    """Import each plugin package's `_plugin.py` and ask it what it offers; no vendor is imported.

    ``disable`` and ``only`` (and the comma-separated PORTICO_DISABLE of the environment) name packages by
    entry point or distribution; one that is switched off is listed and not imported. Nothing that a package
    raises comes out of here, but ``KeyboardInterrupt``.
    """
    from_environment = disabled_by_environment()
    reasons = {folded(word): _switched_off(word, "`disable` in [plugins]") for word in disable}
    reasons |= {folded(word): _switched_off(word, "PORTICO_DISABLE") for word in from_environment}
    allowed = None if only is None else {folded(word): word for word in only}
    matched: set[str] = set()
    packages = []
    for entry, owner, version in _found():
        words = {folded(entry.name), *names_of(owner)}
        reason = next((reasons[word] for word in sorted(words & reasons.keys())), None)
        matched |= words
        if reason is None and allowed is not None and not words & allowed.keys():
            reason = Defect("Left out by `only` in [plugins].", f"Add `{entry.name}` to `only` in [plugins].")
        if reason is not None:
            packages.append(Package(entry.name, owner, version, "disabled", (reason,)))
        else:
            packages.append(_load(entry, owner, version))
    named = {folded(word): word for word in (*disable, *from_environment, *(only or ()))}
    if named.keys() - matched:
        # A package may have commands and nothing else.
        for _, owner, _ in entry_points_of(COMMANDS):
            matched |= names_of(owner)
    unmatched = tuple(word for name, word in named.items() if name not in matched)
    return Plugins(tuple(_with_conflicts(packages)), unmatched)


def _switched_off(word: str, where: str) -> Defect:
    return Defect(f"Switched off by {where} ({word}).", f"Take `{word}` out of {where}.")


def _found() -> list[tuple[EntryPoint, str, str]]:
    return sorted(entry_points_of(GROUP), key=lambda found: (found[0].name, found[1]))


def _load(entry: EntryPoint, distribution: str, version: str) -> Package:
    started = time.perf_counter()

    def fared(
        state: State, defects: Iterable[Defect], cause: BaseException | None = None, offers: Iterable[Offer] = ()
    ) -> Package:
        seconds = time.perf_counter() - started
        return Package(entry.name, distribution, version, state, tuple(defects), tuple(offers), cause, seconds)

    try:
        import_quietly(entry.module)
        module = entry.load()
        hooks = hooks_of(module, entry.name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit and the like must not end the program either
        return fared("broken", [_failed("Its import failed", entry, distribution, error)], error)
    defects = [_mistaken(problem, entry, distribution) for problem in hooks.problems]
    offers: list[Offer] = []
    cause: BaseException | None = None
    for hook in hooks.found:
        try:
            with printing_to_stderr():
                result = hook.call()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            defects.append(_failed(f"Its hook {hook.name} failed", entry, distribution, error))
            cause = cause or error
            continue
        kept, faults = _checked(hook, result)
        defects += [_mistaken(fault, entry, distribution) for fault in faults]
        offers += [Offer(hook.port, registration, entry.name, distribution) for registration in kept]
    if not offers and not defects and not _has_commands(distribution):
        called = ", ".join(hook.name for hook in hooks.found)
        why = f"It registers nothing: what {called} returns is empty." if called else no_hook_in(module)
        return fared("empty", [_mistaken(why, entry, distribution)])
    return fared("broken" if defects else "ok", defects, cause, offers)


def _has_commands(distribution: str) -> bool:
    return any(folded(owner) == folded(distribution) for _, owner, _ in entry_points_of(COMMANDS))


def _failed(what: str, entry: EntryPoint, distribution: str, error: BaseException) -> Defect:
    from portico_host.mending import mend_of_failure, raised_at

    mend = mend_of_failure(distribution, entry.name, error)
    return Defect(f"{what}: {_sentence(error)}{raised_at(error, entry.module)}", mend)


def _mistaken(what: str, entry: EntryPoint, distribution: str) -> Defect:
    from portico_host.mending import mend_by_authors

    return Defect(what, mend_by_authors(distribution, entry.name))


def _checked(hook: Hook, result: object) -> tuple[list[Registration], list[str]]:
    if inspect.iscoroutine(result):
        result.close()  # which is never awaited, and would be complained of
    if not isinstance(result, list | tuple):
        return [], [f"Its hook {hook.name} returned {_article(result)}, not a list of Registrations."]
    kept: dict[tuple[str, int], Registration] = {}
    faults = []
    for item in result:
        if not isinstance(item, Registration):
            faults.append(f"Its hook {hook.name} returned {_article(item)} among its Registrations.")
        elif (item.name, item.port_version) in kept:
            faults.append(f"Its hook {hook.name} registers {item.name!r} twice; the first counts.")
        else:
            kept[item.name, item.port_version] = item
    # A package that knows several versions of the port registers a name once for each; the one that fits counts, and
    # where none does the newest stands for all.
    chosen: dict[str, Registration] = {}
    for item in kept.values():
        present = chosen.get(item.name)
        if present is None or _preference(item, hook.port) > _preference(present, hook.port):
            chosen[item.name] = item
    return list(chosen.values()), faults


def _preference(registration: Registration, port: PortInfo) -> tuple[bool, int]:
    return registration.port_version == port.version, registration.port_version


def _with_conflicts(packages: list[Package]) -> Iterator[Package]:
    counted = Counter((offer.port.name, offer.name) for package in packages for offer in package.offers)
    owners: Mapping[tuple[str, str], list[Package]] = {
        key: [p for p in packages for o in p.offers if (o.port.name, o.name) == key]
        for key, count in counted.items()
        if count > 1
    }
    for package in packages:
        defects = list(package.defects)
        state = package.state
        for offer in package.offers:
            others = [
                p for p in owners.get((offer.port.name, offer.name), ()) if p.distribution != package.distribution
            ]
            if others:
                from portico_host.mending import mend_of_conflict

                told = ", ".join(other.distribution for other in others)
                sentence = f"{title(offer.port)} {offer.name!r} is registered by {told} too."
                defects.append(Defect(sentence, mend_of_conflict(*(each.distribution for each in (package, *others)))))
                state = "conflict" if state in ("ok", "incompatible") else state
            if offer.incompatibility is not None:
                defects.append(offer.incompatibility)
                state = "incompatible" if state == "ok" else state
        yield replace(package, state=state, defects=tuple(defects))


def _article(value: object) -> str:
    kind = type(value).__name__
    return "nothing" if value is None else f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _sentence(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the error of a stranger may not even have a text
        text = ""
    if len(text) > 300:
        text = text[:299] + "…"
    shown = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."
