"""Find the installed plugin packages and what each registers. A broken package does not stop another."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import EntryPoint, distributions
from typing import Any

from portico.errors import PluginBroken, nearest
from portico.plugins import Registration
from portico.ports import PORTS, PortInfo
from portico_host.loading import import_quietly, printing_to_stderr
from portico_host.packages import Offer, Package, Plugins, State, fold, mend_of, mend_of_conflict, sentence_of, title
from portico_host.problems import Problem

_GROUP = "portico"
_COMMANDS = "portico.commands"
_PREFIX = "portico_"


def discover(*, disable: Iterable[str] = (), only: Iterable[str] | None = None, own: Iterable[object] = ()) -> Plugins:
    """Import each plugin package's `_plugin.py` and ask it what it offers; no vendor is imported.

    ``disable`` and ``only`` (and the comma-separated PORTICO_DISABLE of the environment) name packages by
    entry point or distribution; one that is switched off is listed and not imported. ``own`` are modules, classes and
    objects of the application that have hooks as a package has. Nothing that a package raises comes out of here, but
    ``KeyboardInterrupt``.
    """
    off = {fold(word): (word, "`disable` in [plugins]") for word in disable}
    off |= {fold(word): (word, "PORTICO_DISABLE") for word in _read_disabled()}
    allowed = None if only is None else {fold(word): word for word in only}
    matched: set[str] = set()
    packages = []
    points = sorted(_entry_points(_GROUP, _COMMANDS), key=lambda found: (found[0].name, found[1]))
    with_commands = {fold(owner) for entry, owner, _ in points if entry.group == _COMMANDS}
    for entry, owner, version in points:
        if entry.group == _COMMANDS:
            continue
        words = {fold(entry.name), *_names_of(owner)}
        matched |= words
        reason = None
        if named := sorted(words & off.keys()):
            word, where = off[named[0]]
            reason = Problem(f"Switched off by {where} ({word}).", f"Take `{word}` out of {where}.")
        elif allowed is not None and not words & allowed.keys():
            reason = Problem("Left out by `only` in [plugins].", f"Add `{entry.name}` to `only` in [plugins].")
        if reason is not None:
            packages.append(Package(entry.name, owner, version, "disabled", (reason,)))
        else:
            package = Package(entry.name, owner, version)
            mend, has_commands = mend_of(owner, entry.name), fold(owner) in with_commands
            packages.append(_ask(package, partial(_import, entry), entry.value, mend, has_commands=has_commands))
    for plugin in own:
        name = getattr(plugin, "__name__", None) or type(plugin).__name__
        package = Package(name, name, "")
        packages.append(_ask(package, partial(lambda own: own, plugin), name, f"Correct {name}.", has_commands=False))
    # A package may have commands and nothing else.
    matched |= {name for owner in with_commands for name in _names_of(owner)}
    named_words = {**{name: word for name, (word, _) in off.items()}, **(allowed or {})}
    unmatched = tuple(word for name, word in named_words.items() if name not in matched)
    return Plugins(tuple(_with_conflicts(packages)), unmatched)


def _entry_points(*groups: str) -> Iterator[tuple[EntryPoint, str, str]]:
    """Yield the entry points of some groups with name and version of the distribution, each distribution once.

    ``importlib.metadata.entry_points`` reads all distributions in one go, so that one unreadable file would
    hide every package.
    """
    seen: set[str] = set()
    for distribution in distributions():
        try:
            if _GROUP not in (distribution.read_text("entry_points.txt") or ""):
                continue
            points = [point for point in distribution.entry_points if point.group in groups and _has_module(point)]
            name, version = distribution.metadata["Name"], distribution.metadata["Version"] or "unknown"
        except Exception:  # noqa: BLE001, S112 - damaged metadata of others; pip reports it
            continue
        if fold(name) not in seen:
            seen.add(fold(name))
            for point in points:
                yield point, name, version


def _has_module(point: EntryPoint) -> bool:
    try:
        return bool(point.module)
    except AttributeError:  # what is written is no entry point
        return False


def _read_disabled() -> tuple[str, ...]:
    words = (word.strip() for word in os.environ.get("PORTICO_DISABLE", "").split(","))
    return tuple(word for word in words if word)


def _names_of(distribution: str) -> set[str]:
    return {fold(distribution), fold(distribution.removeprefix("portico-"))}


@dataclass(frozen=True, slots=True)
class Command:
    """A command of some package, not imported yet."""

    name: str
    distribution: str
    entry_point: EntryPoint

    @property
    def mend(self) -> str:
        """What mends a command that is broken."""
        return mend_of(self.distribution, self.distribution.removeprefix("portico-"))

    def load(self) -> Any:
        """Import and return it. Raises ``PluginBroken`` when that fails."""
        try:
            import_quietly(self.entry_point.module)
            return self.entry_point.load()
        except (Exception, SystemExit) as error:
            sentence = f"The command {self.name!r} of {self.distribution} is broken: {sentence_of(error)}"
            raise PluginBroken(Problem(sentence, self.mend)) from error


def commands(*, disable: Iterable[str] = ()) -> tuple[Command, ...]:
    """Return the installed commands by name; nothing is imported.

    Of several with one name the first by distribution counts. ``disable`` names packages to leave out, beside those of
    PORTICO_DISABLE, as in `discover`.
    """
    off = {name for word in (*disable, *_read_disabled()) for name in _names_of(word)}
    found: dict[str, Command] = {}
    for point, owner, _ in sorted(_entry_points(_COMMANDS), key=lambda each: (each[0].name, each[1])):
        if not _names_of(owner) & off:
            found.setdefault(point.name, Command(point.name, owner, point))
    return tuple(found.values())


def has_hooks(plugin: object) -> bool:
    """Tell whether a module, a class or an object of the application has hooks, as a package has."""
    names = _hook_names()
    mark = f"{_GROUP}_impl"
    return any(name in names or hasattr(inspect.getattr_static(plugin, name, None), mark) for name in dir(plugin))


def _import(entry: EntryPoint) -> Any:
    import_quietly(entry.module)
    return entry.load()


def _ask(package: Package, load: Callable[[], Any], value: str, mend: str, *, has_commands: bool) -> Package:
    """Load a package and call its hooks, each by itself: pluggy's own call stops at the first one that raises."""
    name, distribution = package.name, package.distribution
    offers: list[Offer] = []
    problem = partial(Problem, mend=mend, subject=distribution)
    problems: list[Problem] = []
    state: State = "ok"
    try:
        plugin = load()
        plugin = plugin() if inspect.isclass(plugin) else plugin
        hooks = _hooks_of(plugin, name)
        problems += map(problem, _lookalikes(plugin))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - SystemExit and the like must not end the program either
        hooks = []
        problems.append(problem(f"Its import failed: {sentence_of(error)}", error=error))
    for port, hook in hooks:
        try:
            with printing_to_stderr():
                result = hook()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
            problems.append(problem(f"Its hook {port.hook} failed: {sentence_of(error)}", error=error))
            continue
        registrations, mistakes = _read_registrations(port, result)
        problems += map(problem, mistakes)
        offers += [Offer(port, registration, name, distribution) for registration in registrations]
    if problems:
        state = "broken"
    elif not offers and not has_commands:
        state = "empty"
        called = ", ".join(port.hook for port, _ in hooks)
        hooked = f"what {called} returns is empty."
        bare = f"no function of {value} is a hook. The hooks are {', '.join(_hook_names())}."
        problems.append(problem(f"It registers nothing: {hooked if called else bare}", severity="warning"))
    return replace(package, state=state, problems=tuple(problems), offers=tuple(offers))


def _hooks_of(plugin: Any, name: str) -> list[tuple[PortInfo, Callable[[], object]]]:
    """Return the hooks that a module or an object implements, in the order of the ports.

    Those are the functions that are named as a hook is, and those that ``pluggy.HookimplMarker("portico")`` marks.
    """
    from pluggy import PluginManager

    class HooksByName(PluginManager):
        def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
            marks = super().parse_hookimpl_opts(plugin, name)
            named = name in _hook_names() and inspect.isroutine(getattr(plugin, name, None))
            return marks or ({} if named else None)

    manager = HooksByName(_GROUP)
    manager.register(plugin, name)
    found = {caller.name: caller.get_hookimpls() for caller in manager.get_hookcallers(plugin) or ()}
    return [(port, each.function) for port in PORTS for each in found.get(port.hook, ())]


def _hook_names() -> list[str]:
    return sorted(port.hook for port in PORTS)


def _lookalikes(plugin: Any) -> Iterator[str]:
    """Yield a sentence on each function that looks like a hook, or is marked as one, and is none."""
    names = _hook_names()
    for attribute in dir(plugin):
        value = getattr(plugin, attribute, None)
        if not inspect.isroutine(value):
            continue
        marks = getattr(value, f"{_GROUP}_impl", None)
        meant = (isinstance(marks, dict) and marks.get("specname")) or attribute
        if meant not in names and (isinstance(marks, dict) or attribute.startswith(_PREFIX)):
            close = nearest(meant, names, count=1)
            advice = f"The nearest is {close[0]}." if close else f"The hooks are {', '.join(names)}."
            marked = f", marked as {meant}," if meant != attribute else ""
            yield f"Its function {attribute}{marked} is not a hook and is not called. {advice}"


def _read_registrations(port: PortInfo, result: Any) -> tuple[list[Registration], list[str]]:
    """Return the registrations of a hook and sentences on what else it returned.

    A package that knows several versions of the port registers a name once for each. The one that fits counts, and
    where none does the newest.
    """
    if not isinstance(result, list | tuple):
        return [], [f"Its hook {port.hook} returned {_kind(result)}, not a list of Registrations."]
    chosen: dict[str, Registration] = {}
    seen: set[tuple[str, int]] = set()
    mistakes = []
    for item in result:
        if not isinstance(item, Registration):
            mistakes.append(f"Its hook {port.hook} returned {_kind(item)} among its Registrations.")
        elif (item.name, item.port_version) in seen:
            mistakes.append(f"Its hook {port.hook} registers {item.name!r} twice; the first counts.")
        else:
            seen.add((item.name, item.port_version))
            known = chosen.setdefault(item.name, item)
            chosen[item.name] = max(
                known, item, key=lambda each: (each.port_version == port.version, each.port_version)
            )
    return list(chosen.values()), mistakes


def _with_conflicts(packages: list[Package]) -> Iterator[Package]:
    owners: dict[tuple[str, str], list[str]] = {}
    for package in packages:
        for offer in package.offers:
            owners.setdefault((offer.port.name, offer.name), []).append(package.distribution)
    for package in packages:
        problems, state = list(package.problems), package.state
        for offer in package.offers:
            others = [each for each in owners[offer.port.name, offer.name] if each != package.distribution]
            if others:
                sentence = f"{title(offer.port)} {offer.name!r} is registered by {', '.join(others)} too."
                mend = mend_of_conflict(package.distribution, *others)
                problems.append(Problem(sentence, mend, subject=package.distribution))
                state = "conflict" if state in ("ok", "incompatible") else state
            if offer.incompatibility is not None:
                problems.append(offer.incompatibility)
                state = "incompatible" if state == "ok" else state
        yield replace(package, state=state, problems=tuple(problems))


def _kind(value: object) -> str:
    if inspect.iscoroutine(value):
        value.close()  # it is never awaited, and Python would warn of that
    return "nothing" if value is None else f"a value of the type {type(value).__name__}"
